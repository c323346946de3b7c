"""Many seeds, no violation: every promise holds under every fault, and each shard saw all kinds of them."""

from __future__ import annotations

from collections import Counter

import pytest

from amounts import amount
from rota.testing.simulation.simulation import Simulation
from rota.testing.simulation.tally import EXPECTED, tally_of
from rota.testing.simulation.verdict import violations_of

SEEDS = amount(48, 1_000, "ROTA_SIM_SEEDS")
STEPS = amount(500, 1_000, "ROTA_SIM_STEPS")
SHARDS = 4
ENOUGH = 5_000  # steps of a shard from which on it must have seen everything


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_promise_holds_under_every_fault(shard):
    seeds = range(shard, SEEDS, SHARDS)
    counts = sum((tally_without_violation(seed) for seed in seeds), Counter())
    if len(seeds) * STEPS < ENOUGH:
        return
    for seed in range(SEEDS + shard, 2 * SEEDS, SHARDS):  # what is rare may take a few more
        if not unseen(counts):
            break
        counts += tally_without_violation(seed)
    assert not unseen(counts), counts


def unseen(counts):
    return [name for name in EXPECTED if not counts[name]]


def tally_without_violation(seed):
    simulation = Simulation(seed)
    simulation.run(STEPS)
    found = [str(violation) for violation in violations_of(simulation)]
    replay = f"replay: python -m rota.testing.simulation --seed {seed} --steps {STEPS}"
    assert not found, "\n".join([replay, *found[:5]])
    return tally_of(simulation)


def test_a_seed_replays_to_the_same_history():
    first, second = Simulation(7), Simulation(7)
    first.run(300)
    second.run(300)
    assert first.recorder.history.pulses == second.recorder.history.pulses
    assert first.recorder.history.calls == second.recorder.history.calls
