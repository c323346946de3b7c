"""Planted bugs: the comparison turns red for each, and a few operations are enough to show it."""

from __future__ import annotations

import math

import pytest
from plants import PLANTS, PromotesEarly

from rota.testing.differential.comparison import Comparison
from rota.testing.differential.shrinking import shrunk

SEEDS = 10
STEPS = 500
TRIED_FIRST = {PromotesEarly: 2}  # a seed that showed it within few operations when this was written
FEW = 40  # operations; a walk of 500 says nothing to a reader


def first_difference(store):
    """The first difference that some seed shows, and what was done until then."""
    first = TRIED_FIRST.get(store, 0)
    for seed in sorted(range(SEEDS), key=lambda seed: seed != first):
        comparison = Comparison({"planted": store()})
        found = comparison.walk(seed, STEPS)
        if found is not None:
            return found, comparison.done
    return None, []


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_store_that_is_wrong_in_one_way_is_caught(plant):
    found, done = first_difference(plant)
    assert found is not None, f"{SEEDS} seeds of {STEPS} steps did not notice: {plant.__doc__}"
    fewer, still = shrunk(
        done, lambda operations: Comparison({"planted": plant()}).replay(operations), seconds=math.inf
    )
    assert still is not None
    assert still.store == "planted"
    assert len(fewer) <= min(FEW, len(done))


def test_a_right_store_is_not_accused():
    from rota.store.memory import MemoryStore  # noqa: PLC0415 - beside the plants it would look like one

    assert first_difference(MemoryStore) == (None, [])
