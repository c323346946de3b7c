"""Runs a differential test: `python -m rota.testing.differential --seed 7 --stores memory,sqlite,redis://…`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING

from rota.model.secrets.masking import masked
from rota.testing.differential.comparison import COMPARE_EVERY, Comparison
from rota.testing.differential.shrinking import shrunk
from rota.testing.differential.stores import REFERENCE, fresh_stores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.testing.differential.comparison import Difference
    from rota.testing.differential.operation import Operation

AT_THE_END = 1_000_000  # steps: a replay compares every answer, and the whole state once, at its end


def main() -> int:
    options = read_options()
    names = [name for name in options.stores.split(",") if name and name != REFERENCE]
    counts: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.seeds):
        with fresh_stores(names) as stores:
            comparison = Comparison(stores, look_every=options.look_every)
            found = comparison.walk(seed, options.steps)
        counts += comparison.counts
        if found is not None:
            _say(f"seed {seed}: {found}")
            _tell_less(comparison.done, found, names, options.shrink_for)
            return 1
    _say(", ".join(f"{number:,} {name}" for name, number in sorted(counts.items())))
    _say(f"{options.seeds} seeds of {options.steps} steps on memory and {', '.join(map(masked, names))}: no difference")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rota.testing.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--steps", type=int, default=500, help="operations of each seed")
    parser.add_argument("--stores", default="memory,sqlite", help="names and URLs, separated by commas")
    parser.add_argument("--look-every", type=int, default=COMPARE_EVERY, help="steps between comparisons of everything")
    parser.add_argument("--shrink-for", type=float, default=20.0, help="seconds to spend on a smaller example")
    return parser.parse_args()


def _tell_less(done: Sequence[Operation], found: Difference, names: Sequence[str], seconds: float) -> None:
    """Print as few operations as still show the difference."""
    chosen = [name for name in names if masked(name) == found.store]

    def replay(operations: Sequence[Operation]) -> Difference | None:
        with fresh_stores(chosen) as stores:
            return Comparison(stores, look_every=AT_THE_END).replay(operations)

    fewer, still = shrunk(done, replay, seconds=seconds)
    if still is None:
        _say("\nthe same operations, done again, show no difference: it takes more than them (time, threads, luck)")
        return
    _say(f"\nthese {len(fewer)} of {len(done)} operations are enough:")
    for number, operation in enumerate(fewer, 1):
        _say(f"{number:4} {operation}")
    _say(f"then {still}")


def _say(text: str) -> None:
    print(text)  # noqa: T201 - what a command is for


if __name__ == "__main__":
    sys.exit(main())
