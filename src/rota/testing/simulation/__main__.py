"""Replays a seed: `python -m rota.testing.simulation --seed 7 --steps 500`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from rota.testing.simulation.simulation import Simulation
from rota.testing.simulation.tally import tally_of
from rota.testing.simulation.verdict import violations_of

SHOWN = 5  # violations of one seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rota.testing.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=500, help="steps under faults, before the quiet")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds; a trace is printed for one alone")
    options = parser.parse_args()
    bad = 0
    counts: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.seeds):
        simulation = Simulation(seed, trace=options.seeds == 1)
        simulation.run(options.steps)
        found = violations_of(simulation)
        counts += tally_of(simulation)
        bad += bool(found)
        for violation in found[:SHOWN]:
            _say(f"seed {seed}, {violation}")
    _say(", ".join(f"{number:,} {name}" for name, number in sorted(counts.items())))
    _say(f"{options.seeds} seeds, {bad} with violations")
    return 1 if bad else 0


def _say(text: str) -> None:
    print(text)  # noqa: T201 - what a command is for


if __name__ == "__main__":
    sys.exit(main())
