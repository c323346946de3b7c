"""How each store bears growth: claims over a long line, wake-ups over many schedules, a crowd due at one instant."""

from collections.abc import Callable
from functools import partial
from random import Random
from statistics import median

from bench.core_suite import FEW, FLAT_MUST, firing
from bench.environments import FILES
from bench.measure import Contender, Figure, compare, race, within, yardstick
from bench.stores import STORES
from bench.wakeup import loaded
from rota.model.job import Job, NewJob
from rota.model.names import new_id
from rota.model.outcome import Succeeded
from rota.model.retry import RetryPolicy
from rota.model.settle import Change, settle
from rota.store.contract import Exchange, Store
from rota.store.urls import store_from_url

BATCH, BULK = 100, 1_000
SIZES = {"backlog": 1_000_000, "schedules": 1_000_000, "crowd": 100_000}
QUICK_SIZES = {"backlog": 100_000, "schedules": 100_000, "crowd": 10_000}
RATES = {"mongo": 2_000}  # firings a second that a store must reach; the others 5,000


def facts() -> dict[str, str]:
    return {"files in": str(FILES)}


def run(rounds: int, quick: bool) -> list[Figure]:  # noqa: FBT001
    sizes = QUICK_SIZES if quick else SIZES
    figures: list[Figure] = []
    for kind, serving in STORES.items():
        with serving() as url:
            print(f"{kind} ...", flush=True)
            figures += figures_of(kind, url, sizes, rounds, 0.2 if quick else 1.0)
    return [*figures, yardstick(rounds)]


def figures_of(kind: str, url: str, sizes: dict[str, int], rounds: int, seconds: float) -> list[Figure]:
    return [
        claim_figure(kind, url, sizes["backlog"], rounds, seconds),
        wakeup_figure(kind, url, sizes["schedules"], rounds, seconds),
        crowd_figure(kind, url, sizes["crowd"], rounds),
    ]


def claim_figure(kind: str, url: str, number: int, rounds: int, seconds: float) -> Figure:
    """One exchange of 100 for 100, with few or many jobs waiting behind them."""
    few, many = Line(url, "few", BULK), Line(url, "many", number)
    times = race({"few": few.contender(), "many": many.contender()}, rounds, seconds)
    few.close()
    many.close()
    return compare(f"{kind}: exchange, {number:,} waiting vs {BULK:,}", times["many"], times["few"], FLAT_MUST)


def wakeup_figure(kind: str, url: str, number: int, rounds: int, seconds: float) -> Figure:
    with loaded(url, FEW, due=10) as few, loaded(url, number, due=10) as many:
        times = race({"few": firing(few, 10), "many": firing(many, 10)}, rounds, seconds)
    return compare(f"{kind}: wake-up, {number:,} schedules vs {FEW:,}, 10 due", times["many"], times["few"], FLAT_MUST)


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
        self.store: Store = store_from_url(url, namespace=namespace)
        self.store.open()
        self.random = Random(1)
        self.claimed: list[Job] = []
        for start in range(0, waiting, BULK):
            self.add(min(BULK, waiting - start))

    def add(self, number: int) -> None:
        at = self.store.now()
        self.store.add_jobs(
            [NewJob(id=new_id(self.random, at), task="noop", payload=b"[]", queue="default") for _ in range(number)]
        )

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

    def close(self) -> None:
        self.store.close()
