"""A shop with a day of work behind it, for the pictures in the docs: runs that take time, wait and fail."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from rota import App, cron, every
from rota.clock import utc_now
from rota.store.contract import Node
from rota.testing import Kit, ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.tasks.task import Task

SCHEDULES = (  # id, task, rule, seconds that a run takes
    ("stock-levels", "stock.levels", every("15m"), 1.2),
    ("rates-fetch", "rates.fetch", every("20m"), 0.3),
    ("mail-outbox", "mail.outbox", every("30m"), 6.0),
    ("invoices-sync", "invoices.sync", every("1h"), 9.0),
    ("feeds-partners", "feeds.partners", cron("0 6,12,18 * * *", tz="Europe/Riga"), 14.0),
    ("reports-nightly", "reports.build", cron("30 3 * * *", tz="Europe/Riga"), 18.0),
    ("mail-digest", "mail.digest", cron("0 9 * * mon-fri", tz="America/New_York"), 4.0),
    ("sitemap-build", "sitemap.build", cron("40 2 * * *", tz="Europe/Riga"), 8.0),
)


@contextmanager
def pictured_shop() -> Iterator[App]:
    """The app, on a store whose clock shows about now; a worker and a scheduler are alive."""
    app, random = App("memory://", name="shop", version="2.4"), Random(7)
    clock = ManualClock(utc_now() - timedelta(days=8))
    tasks = {name: _task(app, clock, random, name, task, seconds) for name, task, _, seconds in SCHEDULES}
    with Kit(app, clock) as kit:
        for name, _, rule, _ in SCHEDULES:
            app.schedules.put(name, tasks[name].job(), rule, by="release")
        kit.travel("5d")
        app.schedules.pause("feeds-partners", reason="the partner moves its API", by="oncall")
        kit.travel("18h")
        app.schedules.resume("feeds-partners", by="oncall")
        kit.travel_to(utc_now())
        _record_heartbeats(app)
        yield app


def _task(app: App, clock: ManualClock, random: Random, name: str, task: str, seconds: float) -> Task[[], None]:
    def run() -> None:
        left = utc_now() - clock.now
        clock.travel(timedelta(seconds=seconds * random.uniform(0.5, 1.4)))  # the run takes its time
        print(f"{name} is done")  # noqa: T201 - into its log
        if name == "invoices-sync" and left < timedelta(hours=5):
            raise ConnectionError("bank.example:443 did not answer in 30 s")
        if name == "mail-outbox" and random.random() < 0.04:
            raise KeyError("vat_id")

    return app.task(name=task, retries=0, queue=task.partition(".")[0])(run)


def _record_heartbeats(app: App) -> None:
    store = app.open()
    now = store.now()
    queues = tuple(sorted({task.partition(".")[0] for _, task, _, _ in SCHEDULES}))
    for number, running in ((1, 3), (2, 1)):
        node = Node(
            id=f"web-{number}", host=f"web-{number}", pid=100 + number, roles=("worker", "scheduler"), queues=queues,
            tasks=tuple(task for _, task, _, _ in SCHEDULES), concurrency=8, running=running, app="shop",
            version="2.4", started_at=now, beat_at=now,
        )  # fmt: skip
        store.record_heartbeat(node, now=now)
