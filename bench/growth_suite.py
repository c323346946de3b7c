"""How a store bears growth: everything that people and workers do, on a system of 1,000 and one of 1,000,000.

One suite for each store (`growth_redis`), all of them by `growth`. ROTA_BENCH_SIZES="1000,200000" says other sizes.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from time import perf_counter

from bench.core_suite import FLAT_MUST, GROWTH_LIMIT, firing
from bench.environments import FILES, output
from bench.grown import DUE, QUEUE, Grown
from bench.measure import Figure, again, alone, compare, point, race, turns, within, yardstick
from bench.stores import STORES
from bench.wakeup import MINUTE, Wakeup, loaded

SIZES, QUICK_SIZES = (1_000, 1_000_000), (1_000, 50_000)
CROWD, QUICK_CROWD = 20_000, 5_000
DRAINED = 900  # jobs that a worker takes, however many wait
LIST_LIMITS = {"mongo": 0.040}  # seconds that a list, a count or a command may take; the others 0.020
LIMITS = {  # of what looks through 1,500 jobs, or up to 10,000 schedules or jobs
    "search by an argument": 0.05,
    "search by a task and an argument": 0.05,
    "stats": 0.2,
    "first page": 0.2,
    "doctor": 1.0,
}
RATES = {"mongo": 2_000}  # firings a second that a store must reach; the others 5,000
MUSTS = {"claim": 1 / 1.5, "settle": 1 / 1.5, "exchange": 1 / 1.5, "enqueue": 1 / 2}  # by an act's first word
OTHER_MUST = 1 / 3
ONCE = ("enqueue 1,000", "prune")  # acts that are done once a round, so that the small system stays small
CHARTED = (": exchange", f": wake-up, {DUE} due")

Samples = Mapping[int, list[float]]  # of each round, by how much there is


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool, kind: str) -> list[Figure]:  # noqa: FBT001
    seconds = 0.05 if quick else 0.2
    begun = perf_counter()
    with STORES[kind]() as url:
        systems = {size: filled(url, size) for size in sizes(quick=quick)}
        figures = [
            *read_figures(kind, systems, rounds, seconds / 4),
            *whole_figures(kind, systems),
            *wakeup_figures(kind, systems, rounds, seconds),
            *drain_figures(kind, systems, rounds),
            *act_figures(kind, systems, rounds, seconds),
            crowd_figure(kind, url, QUICK_CROWD if quick else CROWD, rounds),
        ]
        for system in systems.values():
            system.close()
    print(f"{kind}: {perf_counter() - begun:.0f} s in all", flush=True)
    return [*figures, yardstick(rounds)]


def sizes(*, quick: bool) -> Sequence[int]:
    """The small and the large one, and what is between them."""
    said = os.environ.get("ROTA_BENCH_SIZES", "")
    return sorted(map(int, said.split(","))) if said else QUICK_SIZES if quick else SIZES


def filled(url: str, size: int) -> Grown:
    begun = perf_counter()
    system = Grown(url, f"grown{size}", size)
    print(f"filled {size:,} in {perf_counter() - begun:.0f} s", flush=True)
    return system


def act_figures(kind: str, systems: Mapping[int, Grown], rounds: int, seconds: float) -> list[Figure]:
    figures: list[Figure] = []
    acts = {size: system.acts() for size, system in systems.items()}
    for name in acts[min(acts)]:
        long = 0.0 if name.startswith(ONCE) else seconds
        times = race({str(size): own[name] for size, own in acts.items()}, rounds, long)
        must = MUSTS.get(name.split()[0], OTHER_MUST)
        figures += flat_line(f"{kind}: {name}", {size: times[str(size)] for size in systems}, must)
    return figures


def wakeup_figures(kind: str, systems: Mapping[int, Grown], rounds: int, seconds: float) -> list[Figure]:
    """A scheduler's turn, and by how much its process grows."""
    wakeups = {size: woken(system) for size, system in systems.items()}
    times = race({str(size): firing(one, DUE) for size, one in wakeups.items()}, rounds, seconds)
    looks = race({str(size): again(one.turn) for size, one in wakeups.items()}, rounds, seconds)
    growths = {size: [grown(one) for _ in range(rounds)] for size, one in wakeups.items()}
    for one in wakeups.values():
        one.close()
    return [
        *flat_line(f"{kind}: wake-up, {DUE} due", {size: times[str(size)] for size in systems}, FLAT_MUST),
        *flat_line(f"{kind}: wake-up, none due", {size: looks[str(size)] for size in systems}, FLAT_MUST),
        weight_figure(f"{kind}: wake-up, growth", growths),
    ]


def woken(system: Grown) -> Wakeup:
    """A scheduler at the next minute, after what became due while the system was filled."""
    now = system.store.now()
    wakeup = Wakeup(system.url, system.namespace, now - now % MINUTE + MINUTE)
    wakeup.turn_all()
    return wakeup


def drain_figures(kind: str, systems: Mapping[int, Grown], rounds: int) -> list[Figure]:
    """A worker in a process of its own takes some of the jobs; as many are added for the next."""
    drains: dict[int, list[dict[str, float]]] = {size: [] for size in systems}
    for size in map(int, turns(map(str, systems), rounds)):
        system = systems[size]
        command = (sys.executable, "-m", "bench.weigh", system.url, system.namespace, QUEUE, str(DRAINED))
        drains[size].append(json.loads(output(command)))
        system.add(DRAINED)
    return [
        *flat_line(f"{kind}: drain", {size: [one["seconds"] for one in own] for size, own in drains.items()}),
        weight_figure(f"{kind}: drain, growth", {size: [one["growth"] for one in own] for size, own in drains.items()}),
    ]


def read_figures(kind: str, systems: Mapping[int, Grown], rounds: int, seconds: float) -> list[Figure]:
    """Each list, count and command on the largest system beside its limit, before anything is written."""
    figures: list[Figure] = []
    reads = {size: system.reads() for size, system in systems.items()}
    few, many = min(reads), max(reads)
    for name in reads[few]:
        times = race({str(size): again(own[name]) for size, own in reads.items()}, rounds, seconds)
        small, large = times[str(few)], times[str(many)]
        limit = LIMITS.get(name, LIST_LIMITS.get(kind, 0.020))
        note = f"{growth(large, small)}; {few:,}: {1e6 * median(small):,.0f} us"
        figures.append(within(f"{kind}: {name}, at {many:,}", median(large), large, limit, "us", note=note))
        print(f"  {name}: {1e3 * median(large):.2f} ms, {note}", flush=True)
    return figures


def whole_figures(kind: str, systems: Mapping[int, Grown]) -> list[Figure]:
    """What reads all schedules, and so grows with their number."""
    many = max(systems)
    figures: list[Figure] = []
    for name, read in systems[many].passes().items():
        begun = perf_counter()
        read()
        figures.append(alone(f"{kind}: {name}, {many:,} schedules", [perf_counter() - begun], "ms"))
    return figures


def grown(wakeup: Wakeup) -> float:
    """By how many bytes a new process grows, as it wakes up once."""
    wakeup.advance()
    command = (sys.executable, "-m", "bench.wakeup", wakeup.url, wakeup.namespace, str(wakeup.clocked.at))
    return float(output(command))


def flat_line(series: str, samples: Samples, must: float | None = None) -> list[Figure]:
    """The largest beside the smallest, and the points of the chart."""
    few, many = min(samples), max(samples)
    note = growth(samples[many], samples[few])
    print(f"  {series}: {1e3 * median(samples[many]):.2f} ms, {note}", flush=True)
    figure = compare(f"{series}, {many:,} vs {few:,}", samples[many], samples[few], must, note=note)
    is_charted = series.endswith(CHARTED)
    return [figure, *(point(series, size, rounds, "us") for size, rounds in samples.items() if is_charted)]


def growth(large: Sequence[float], small: Sequence[float]) -> str:
    return f"grows {median(large) / median(small):.2f} times"


def weight_figure(name: str, samples: Samples) -> Figure:
    most = max(samples)
    worst = samples[most]
    return within(f"{name}, at {most:,}", median(worst), worst, GROWTH_LIMIT, "MB")


def crowd_figure(kind: str, url: str, number: int, rounds: int) -> Figure:
    limit = 1 / RATES.get(kind, 5_000)
    with loaded(url, number, due=number) as rush:
        times = race({"rush": firing(rush, number, rush.turn_all)}, rounds, 0.0)["rush"]
    each = [total / number for total in times]
    note = f"{1 / median(each):,.0f} firings/s"
    return within(f"{kind}: firing, {number:,} due at once", median(each), each, limit, "us", note=note)
