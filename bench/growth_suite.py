"""How each store bears growth: a long line of jobs, many schedules, a crowd that is due at one instant."""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median

from bench.core_suite import FLAT_MUST, GROWTH_LIMIT, firing
from bench.environments import FILES, output
from bench.lists import Archive
from bench.measure import Contender, Figure, again, compare, point, race, turns, within, yardstick
from bench.stores import STORES
from bench.wakeup import Wakeup, loaded
from rota import App
from rota.model.jobs.job import Job
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import Change, settle
from rota.store.contract import Exchange

BATCH, BULK = 100, 10_000
ARCHIVES, QUICK_ARCHIVES = (1_000, 1_000_000), (1_000, 30_000)  # ended jobs behind a list
LIST_LIMITS = {"mongo": 0.040}  # seconds that a list or count may take; the others 0.020
SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000)
CROWD, QUICK_CROWD = 100_000, 10_000
DRAINED = 900  # jobs of each line, whatever its length
DUE = 10
RATES = {"mongo": 2_000}  # firings a second that a store must reach; the others 5,000

Samples = Mapping[int, list[float]]  # of each round, by how much there is


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    sizes, seconds = (QUICK_SIZES, 0.2) if quick else (SIZES, 1.0)
    figures: list[Figure] = []
    for kind, serving in STORES.items():
        with serving() as url:
            print(f"{kind} ...", flush=True)
            figures += line_figures(kind, url, sizes, rounds, seconds)
            figures += wakeup_figures(kind, url, sizes, rounds, seconds)
            figures += list_figures(kind, url, QUICK_ARCHIVES if quick else ARCHIVES, rounds)
            figures.append(crowd_figure(kind, url, QUICK_CROWD if quick else CROWD, rounds))
    return [*figures, yardstick(rounds)]


def line_figures(kind: str, url: str, sizes: tuple[int, ...], rounds: int, seconds: float) -> list[Figure]:
    """One exchange of 100 for 100, then a real worker's drain of a part, with few or many jobs waiting behind."""
    lines = {size: Line(url, f"line{size}", size) for size in sizes}
    times = race({str(size): line.contender() for size, line in lines.items()}, rounds, seconds)
    drains: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for size in map(int, turns(map(str, sizes), rounds)):
        drains[size].append(lines[size].drain(DRAINED))
    for line in lines.values():
        line.close()
    return [
        *flat_line(f"{kind}: exchange", "waiting", {size: times[str(size)] for size in sizes}),
        *flat_line(f"{kind}: drain", "waiting", {size: [one["seconds"] for one in drains[size]] for size in sizes}),
        *weight_line(f"{kind}: drain, growth", {size: [one["growth"] for one in drains[size]] for size in sizes}),
    ]


def wakeup_figures(kind: str, url: str, sizes: tuple[int, ...], rounds: int, seconds: float) -> list[Figure]:
    with ExitStack() as stack:
        wakeups = {size: stack.enter_context(loaded(url, size, DUE)) for size in sizes}
        times = race({str(size): firing(one, DUE) for size, one in wakeups.items()}, rounds, seconds)
        growths = {size: [grown(one) for _ in range(rounds)] for size, one in wakeups.items()}
    return [
        *flat_line(f"{kind}: wake-up, {DUE} due", "schedules", {size: times[str(size)] for size in sizes}),
        *weight_line(f"{kind}: wake-up, growth", growths),
    ]


def list_figures(kind: str, url: str, sizes: tuple[int, ...], rounds: int) -> list[Figure]:
    """Each list and count that a page shows, with few or many ended jobs."""
    archives = {size: Archive(url, f"archive{size}", size) for size in sizes}
    figures: list[Figure] = []
    limit = LIST_LIMITS.get(kind, 0.020)
    for name in archives[sizes[0]].reads():
        readers = {str(size): again(one.reads()[name]) for size, one in archives.items()}
        times = race(readers, rounds, 0.0)
        worst = times[str(sizes[-1])]
        figures.append(within(f"{kind}: {name}, at {sizes[-1]:,}", median(worst), worst, limit, "us"))
        figures += [point(f"{kind}: {name}", size, times[str(size)], "us") for size in sizes]
    for archive in archives.values():
        archive.close()
    return figures


def grown(wakeup: Wakeup) -> float:
    """By how many bytes a new process grows, as it wakes up once."""
    wakeup.advance()
    command = (sys.executable, "-m", "bench.wakeup", wakeup.url, wakeup.namespace, str(wakeup.clocked.at))
    return float(output(command))


def flat_line(series: str, what: str, samples: Samples) -> list[Figure]:
    """The points, and the last beside the first."""
    few, many = min(samples), max(samples)
    title = f"{series}, {many:,} {what} vs {few:,}"
    points = [point(series, size, rounds, "us") for size, rounds in samples.items()]
    return [compare(title, samples[many], samples[few], FLAT_MUST), *points]


def weight_line(series: str, samples: Samples) -> list[Figure]:
    """The points, and the last beside what is allowed."""
    most = max(samples)
    worst = samples[most]
    points = [point(series, size, rounds, "MB") for size, rounds in samples.items()]
    return [within(f"{series}, at {most:,}", median(worst), worst, GROWTH_LIMIT, "MB"), *points]


def crowd_figure(kind: str, url: str, number: int, rounds: int) -> Figure:
    limit = 1 / RATES.get(kind, 5_000)
    with loaded(url, number, due=number) as rush:
        times = race({"rush": firing(rush, number, rush.turn_all)}, rounds, 0.0)["rush"]
    each = [total / number for total in times]
    note = f"{1 / median(each):,.0f} firings/s"
    return within(f"{kind}: firing, {number:,} due at once", median(each), each, limit, "us", note=note)


class Line:
    """A store with so many jobs waiting; each lap settles a batch and claims the next, and as many come in between."""

    def __init__(self, url: str, namespace: str, waiting: int) -> None:
        self.url, self.namespace = url, namespace
        self.app = App(url, namespace=namespace)
        self.task = self.app.task(name="noop")(lambda: None)
        self.store = self.app.open()
        self.claimed = list[Job]()
        for start in range(0, waiting, BULK):
            self.add(min(BULK, waiting - start))

    def add(self, number: int) -> None:
        self.app.enqueue_many([self.task.job() for _ in range(number)])

    def contender(self) -> Contender:
        def prepare() -> Callable[[], None]:
            self.add(BATCH)
            return partial(self.exchange, self.changes())

        return Contender(prepare)

    def changes(self) -> list[Change]:
        at = self.store.now()
        return [settle(job, Succeeded(), RetryPolicy(), at, 0.5) for job in self.claimed]

    def exchange(self, settled: list[Change]) -> None:
        reply = self.store.exchange(Exchange(holder="bench", settled=settled, want=BATCH))
        if len(reply.claimed) != BATCH or reply.refused:
            raise AssertionError(f"{len(reply.claimed)} claimed, {len(reply.refused)} refused")
        self.claimed = reply.claimed

    def drain(self, number: int) -> dict[str, float]:
        """A worker in a process of its own takes so many, which are there again for the next."""
        command = (sys.executable, "-m", "bench.weigh", self.url, self.namespace, str(number))
        result: dict[str, float] = json.loads(output(command))
        self.add(number)
        return result

    def close(self) -> None:
        self.app.close()
