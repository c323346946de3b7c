"""Zones, rules, bounds and pauses that change every few hours: no local time is lost, and none runs twice.

A failure names its seed; `ROTA_MOVE_SEEDS=that-seed` replays it alone. ROTA_MOVE_WORLDS makes more of them.
"""

from __future__ import annotations

import logging
import os

import pytest

from amounts import amount
from rota.store.memory import MemoryStore
from tenants.world import World, replayable

WORLDS = amount(30, 1_000, "ROTA_MOVE_WORLDS")
SEEDS = os.environ.get("ROTA_MOVE_SEEDS", "").split(",")


@pytest.mark.parametrize("seed", SEEDS if SEEDS != [""] else [f"move-{number}" for number in range(WORLDS)])
def test_a_month_of_moves_comes_to_what_the_rules_say(seed, caplog):
    world = World(MemoryStore(), seed, tenants=1, days=25, is_busy=True)
    with caplog.at_level(logging.CRITICAL, logger="rota"), replayable(seed, "test_moves.py", "ROTA_MOVE_SEEDS"):
        assert world.live() > 0
