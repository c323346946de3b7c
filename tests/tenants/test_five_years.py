"""Five years of three hundred tenants: what fires, and what the ledger says of it, equals an independent oracle.

A failure names its seed; `ROTA_TENANT_SEEDS=that-seed` replays it alone. ROTA_TENANT_WORLDS makes more of them.
"""

from __future__ import annotations

import logging
import os

import pytest

from amounts import amount
from every_store import DURABLE, fresh_place
from rota.store.memory import MemoryStore
from tenants.world import World, replayable

TENANTS = 4  # in one world
TENANTS_OF_A_YEAR = amount(3, 20)
WORLDS = amount(8, 150, "ROTA_TENANT_WORLDS")
SEEDS = os.environ.get("ROTA_TENANT_SEEDS", "").split(",")
SEED = SEEDS[0] or "a-year"
DAYS = 5 * 365 + 1


@pytest.mark.parametrize("seed", SEEDS if SEEDS != [""] else [f"world-{number}" for number in range(WORLDS)])
def test_five_years_come_to_what_the_rules_say(seed, caplog):
    world = World(MemoryStore(), seed, tenants=TENANTS, days=DAYS)
    with caplog.at_level(logging.CRITICAL, logger="rota"), replayable(seed, "test_five_years.py"):
        assert world.live() > 100 * TENANTS


@pytest.mark.slow_first
@pytest.mark.parametrize("kind", ["memory", *DURABLE])
def test_a_year_comes_to_the_same_on_every_store(kind, tmp_path, caplog):
    with fresh_place(kind, tmp_path).opened() as store:
        world = World(store, SEED, tenants=TENANTS_OF_A_YEAR, days=365)
        with caplog.at_level(logging.CRITICAL, logger="rota"), replayable(SEED, "test_five_years.py"):
            assert world.live() > 50 * TENANTS_OF_A_YEAR
