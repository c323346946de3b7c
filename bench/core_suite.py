"""The scheduler on a SQLite file, however many schedules there are; and what an import and an install cost."""

import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from venv import EnvBuilder

import msgspec

from bench.environments import FILES, Disk, install, output, packages, scratch
from bench.measure import Contender, Figure, again, alone, compare, race, within, yardstick
from bench.wakeup import Wakeup, loaded
from rota.model.schedules.edit import Edit

FLAT_MUST = 1 / 3  # what a wake-up with many schedules may cost, beside one with few
GROWTH_LIMIT = 50_000_000  # bytes
IMPORT_LIMIT = 0.15  # seconds
FIRING_LIMIT = 1 / 5_000  # seconds
PACKAGES_LIMIT = 9  # Rota among them
TOOLS = {"pip", "setuptools", "wheel"}  # what an environment comes with

FEW, MANY, MANY_QUICK = 1_000, 1_000_000, 100_000
CROWD, CROWD_QUICK = 10_000, 2_000
FILE = "rota.db"


def facts() -> dict[str, str]:
    return {"sqlite": sqlite3.sqlite_version, "files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    seconds = 0.2 if quick else 1.0
    disk, figures = Disk(), list[Figure]()
    for group in (
        partial(wakeup_figures, rounds, seconds, MANY_QUICK if quick else MANY),
        partial(tick_figures, rounds, seconds, CROWD_QUICK if quick else CROWD),
    ):
        disk.ask()
        figures += group()
        disk.ask()
    return [*figures, *import_figures(rounds, seconds), install_figure(), disk.figure(), yardstick(rounds)]


def file_in(folder: str) -> str:
    return f"sqlite:///{Path(folder) / FILE}"


def wakeup_figures(rounds: int, seconds: float, number: int) -> list[Figure]:
    with scratch() as folder, loaded(file_in(folder), FEW, due=10) as few, loaded(file_in(folder), number, 10) as many:
        times = race({"few": firing(few, 10), "many": firing(many, 10)}, rounds, seconds)
        looks = race({"few": again(few.turn), "many": again(many.turn)}, rounds, seconds)
        title = f"wake-up, {number:,} schedules vs {FEW:,}"
        return [
            compare(f"{title}, 10 due", times["many"], times["few"], FLAT_MUST),
            compare(f"{title}, none due", looks["many"], looks["few"], FLAT_MUST),
            growth_figure(many, rounds, f"wake-up, {number:,} schedules: growth"),
            *state_figures(few, Path(folder) / FILE, rounds, seconds),
        ]


def firing(wakeup: Wakeup, due: int, turn: Callable[[], None] | None = None) -> Contender:
    """A minute passes, untimed, and the scheduler wakes up; that all were fired is checked before the next."""
    laps, before = 0, wakeup.jobs()

    def prepare() -> Callable[[], None]:
        nonlocal laps
        if wakeup.jobs() - before != laps * due:
            raise AssertionError(f"{wakeup.jobs() - before} jobs were made in {laps} minutes of {due}")
        laps += 1
        wakeup.advance()
        return turn or wakeup.turn

    return Contender(prepare)


def growth_figure(wakeup: Wakeup, rounds: int, name: str) -> Figure:
    sizes: list[float] = []
    for _ in range(rounds):
        wakeup.advance()
        command = (sys.executable, "-m", "bench.wakeup", wakeup.url, wakeup.namespace, str(wakeup.clocked.at))
        sizes.append(float(output(command)))
    return within(name, median(sizes), sizes, GROWTH_LIMIT, "MB")


def state_figures(wakeup: Wakeup, file: Path, rounds: int, seconds: float) -> list[Figure]:
    """One schedule's state, read and written as the scheduler and the API do it; beside them the bare statements."""
    store, name = wakeup.store, "far-500"
    table = f"{wakeup.namespace}_schedule"
    bare = sqlite3.connect(file, isolation_level=None)
    bare.execute("PRAGMA synchronous = FULL")

    def write() -> None:
        before = store.get_schedules([name])[0]
        after = msgspec.structs.replace(before, version=before.version + 1)
        if store.edit_schedules([Edit(after=after, expect_version=before.version)]):
            raise AssertionError("nobody else writes here, and yet the version had moved on")

    def bare_read() -> None:
        bare.execute(f"SELECT * FROM {table} WHERE id = ?", (name,)).fetchone()  # noqa: S608 - a name of our own

    def bare_write() -> None:
        bare.execute(f"UPDATE {table} SET version = version + 1 WHERE id = ?", (name,))  # noqa: S608

    read = partial(store.get_schedules, [name])
    reads = race({"ours": again(read), "bare": again(bare_read)}, rounds, seconds)
    writes = race({"ours": again(write), "bare": again(bare_write)}, rounds, seconds)
    bare.close()
    return [
        compare("state of one schedule, read vs bare SELECT", reads["ours"], reads["bare"]),
        compare("state of one schedule, read and write vs bare UPDATE", writes["ours"], writes["bare"]),
    ]


def tick_figures(rounds: int, seconds: float, crowd: int) -> list[Figure]:
    with scratch() as folder, loaded(file_in(folder), 100, 100) as tick, loaded(file_in(folder), crowd, crowd) as rush:
        times = race({"tick": firing(tick, 100), "rush": firing(rush, crowd, rush.turn_all)}, rounds, seconds)
    each = [total / crowd for total in times["rush"]]
    note = f"{1 / median(each):,.0f} firings/s"
    return [
        alone("tick, 100 schedules due, all fired", times["tick"], "ms"),
        within(f"firing, {crowd:,} due at once", median(each), each, FIRING_LIMIT, "us", note=note),
    ]


def import_figures(rounds: int, seconds: float) -> list[Figure]:
    codes = {"rota": "import rota", "none": "pass"}
    laps = {name: again(partial(output, [sys.executable, "-c", code])) for name, code in codes.items()}
    times = race(laps, rounds, max(0.5, seconds))
    costs = [ours - none for ours, none in zip(times["rota"], times["none"], strict=True)]
    note = f"python -c 'import rota' {1e3 * median(times['rota']):.0f} ms"
    return [
        within("import rota, beyond the interpreter's start", median(costs), costs, IMPORT_LIMIT, "ms", note=note),
        alone("yardstick: python -c pass", times["none"], "ms"),
    ]


def install_figure() -> Figure:
    with scratch() as folder:
        EnvBuilder(with_pip=True).create(folder)
        python = Path(folder) / "bin" / "python"
        install(python, Path(__file__).parent.parent)
        names = sorted(packages(python).keys() - TOOLS)
    number = float(len(names))
    return within("core install", number, [number], PACKAGES_LIMIT, "packages", note=", ".join(names))
