"""Run the suites, print their table, write it as JSON, and fail where a must is missed."""

import argparse
import compileall
import json
import os
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import bench
import rota
from bench import chart, results
from bench.measure import Figure
from bench.stores import STORES

SUITES = {  # modules with run(rounds, quick) and facts(), which say what was measured and where; a store may follow
    "asrun": "bench.asrun_suite",
    "time": "bench.time_suite",
    "core": "bench.core_suite",
    "sqlite": "bench.sqlite_suite",
    "redis": "bench.redis_suite",
    "postgres": "bench.postgres_suite",
    "mongo": "bench.mongo_suite",
    "mongo_replica_set": "bench.mongo_replica_set_suite",
    "work": "bench.work_suite",
    "schedules": "bench.schedules_suite",
    "tenants": "bench.tenants_suite",
    "punctual": "bench.punctual_suite",
    **{f"growth_{kind}": f"bench.growth_suite:{kind}" for kind in STORES},
    "http": "bench.http_suite",
    "pages": "bench.pages_suite",
    "living": "bench.living_suite",
    "idle": "bench.idle_suite",
    "contention": "bench.contention_suite",
    "documents": "bench.documents_suite",
}
GROUPS = {"growth": [f"growth_{kind}" for kind in STORES]}  # suites that one word asks for
HEADINGS = ("figure", "ours", "theirs", "unit", "ratio", "spread", "must", "")


def main() -> int:
    options = parse()
    compile_all()
    missed: list[tuple[str, Figure]] = []
    asked = [name for word in options.only or SUITES for name in GROUPS.get(word, [word])]
    for name in asked:
        missed += [(name, figure) for figure in run_suite(name, options.rounds, options.quick) if figure.missed]
    draw()
    report(missed)
    return 1 if missed else 0


def compile_all() -> None:
    """Compile the bytecode first, as an install does: peers do, and a trial's process would compile within its time."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for place in (rota, bench):
        compileall.compile_dir(Path(place.__file__ or "").parent, maxlevels=10, quiet=1, rx=re.compile(r"/\.peers/"))


def draw() -> None:
    """Renew the charts, as soon as every store has its figures."""
    if results.read("asrun") or results.of_stores().keys() == results.STORES.keys():
        for file in chart.write():
            print(f"drawn: {file}")


def report(missed: list[tuple[str, Figure]]) -> None:
    """What does not reach its must, all in one place."""
    print(f"\n{len(missed)} missed" if missed else "\nevery must is reached", file=sys.stderr)
    for suite, figure in missed:
        print(f"MISSED: {suite}: {figure.name}: {short(figure.ratio)}x, must be {short(figure.must)}x", file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*SUITES, *GROUPS], help="a suite (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="at least 3 (default: 5)")
    parser.add_argument("--quick", action="store_true", help="shorter rounds, wider spread")
    options = parser.parse_args()
    if options.rounds < 3:
        parser.error("a median needs at least 3 rounds")
    return options


def run_suite(name: str, rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    module, _, store = SUITES[name].partition(":")
    suite = import_module(module)
    known: dict[str, object] = {
        "suite": name,
        "python": platform.python_version(),
        "rota": version("rota"),
        **suite.facts(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "rounds": rounds,
        "quick": quick,
    }
    figures: list[Figure] = suite.run(rounds, quick, *([store] if store else []))
    print(", ".join(f"{key} {value}" for key, value in known.items()))
    print_table(figures)
    write(name, known, figures)
    return figures


def print_table(figures: Iterable[Figure]) -> None:
    rows = [HEADINGS, *map(row, figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells, note in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:-1], strict=True)]
        print("  ".join([name.ljust(widths[0]), *aligned, note]).rstrip())


def row(figure: Figure) -> tuple[str, ...]:
    low, high = figure.spread
    return (
        figure.name,
        short(figure.ours),
        short(figure.theirs),
        figure.unit,
        short(figure.ratio, "x"),
        f"{short(low)}..{short(high)}",
        short(figure.must, "x"),
        " ".join(filter(None, ("MISSED" if figure.missed else "", figure.note))),
    )


def short(number: float | None, unit: str = "") -> str:
    """Three digits, more only before the point."""
    if number is None:
        return "-"
    places = 3 if 0 < number < 0.1 else 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:,.{places}f}{unit}"


def write(name: str, facts: dict[str, object], figures: list[Figure]) -> None:
    results.FOLDER.mkdir(exist_ok=True)
    content = {**facts, "figures": [asdict(figure) for figure in figures]}
    (results.FOLDER / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
