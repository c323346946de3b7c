"""Many seeds, no violation: every promise holds under every fault, and each shard saw all kinds of them."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from rota.testing.simulation.simulation import Simulation
from rota.testing.simulation.tally import EXPECTED, tally_of
from rota.testing.simulation.verdict import violations_of

SEEDS = int(os.environ.get("ROTA_SIM_SEEDS", "500"))
STEPS = int(os.environ.get("ROTA_SIM_STEPS", "500"))
SHARDS = 20
ENOUGH = 5_000  # steps of a shard from which on it must have seen everything …
RARE = {"refused firings"}  # … but for what a shard of few firings may miss


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_promise_holds_under_every_fault(shard):
    seeds = range(shard, SEEDS, SHARDS)
    counts = Counter()
    for seed in seeds:
        simulation = Simulation(seed)
        simulation.run(STEPS)
        found = [str(violation) for violation in violations_of(simulation)]
        assert not found, f"replay: python -m rota.testing.simulation --seed {seed} --steps {STEPS}\n" + "\n".join(
            found[:5]
        )
        counts += tally_of(simulation)
    if len(seeds) * STEPS >= ENOUGH:
        assert not [name for name in EXPECTED if not counts[name] and name not in RARE], counts


@pytest.mark.parametrize("name", sorted(RARE))
def test_what_is_rare_happens_too(name):
    counts = Counter()
    for seed in range(SEEDS, 2 * SEEDS):
        simulation = Simulation(seed)
        simulation.run(STEPS)
        counts += tally_of(simulation)
        if counts[name]:
            return
    pytest.fail(f"{SEEDS} seeds never showed it: {counts}")


def test_a_seed_replays_to_the_same_history():
    first, second = Simulation(7), Simulation(7)
    first.run(300)
    second.run(300)
    assert first.recorder.history.pulses == second.recorder.history.pulses
    assert first.recorder.history.calls == second.recorder.history.calls
