"""A shop with six weeks behind it: runs that succeeded, failed, were late, skipped, paused and missed."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rota import App, cron, every
from rota.clock import utc_now
from rota.testing import Kit, ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = """<script>alert('x')</script>"'><img src=x onerror=alert(1)>{{7*7}}"""
LONG = "a-" + "very-long-name-" * 8


@contextmanager
def shop_with_a_past(*, days: int = 20, down_for: str = "90m") -> Iterator[App]:
    """The app on a store whose clock has come to about now; nobody fires its schedules any more since `down_for`."""
    app = App("memory://", name="shop", version="2.4")
    clock = ManualClock((utc_now() - timedelta(days=days)).replace(minute=0, second=0, microsecond=0))
    _declare(app, clock)
    with Kit(app, clock) as kit:
        _make(app)
        kit.travel(f"{days - 8}d")
        app.schedules.pause("reports-nightly", reason="warehouse is being moved", by="oncall")
        kit.travel("3d")
        app.schedules.resume("reports-nightly", by="oncall")
        kit.travel("26h")
        clock.travel("27h")  # nothing is alive
        kit.travel("2d")
        app.schedules.pause("feeds-partners", reason="partner moves its API", by="oncall")
        app.schedules.disable("old-cleanup", by="release")
        kit.travel_to(utc_now())
        clock.travel(down_for)
        yield app


def _declare(app: App, clock: ManualClock) -> None:
    @app.task(name="reports.build", queue="batch", retries=0)
    def build(kind: str) -> None:
        del kind
        if clock.now.day % 7 == 0:
            raise KeyError("vat_id")

    @app.task(name="invoices.sync", retries=0)
    def sync() -> None:
        if utc_now() - clock.now < timedelta(hours=5):
            raise ConnectionError("bank.example:443 did not answer in 30 s")

    @app.task(name="quick")
    def quick(note: str = "") -> None:
        del note


def _make(app: App) -> None:
    tasks = app.__rota_tasks__
    build, sync, quick = (tasks.get(name) for name in ("reports.build", "invoices.sync", "quick"))
    put = app.schedules.put
    put("reports-nightly", build.job("daily"), cron("30 3 * * *", tz="Europe/Riga"), by="release", catchup="skip")
    put("invoices-sync", sync.job(), every("1h"), by="release")
    put("feeds-partners", quick.job(), cron("0 6,12,18 * * *", tz="Europe/Riga"), by="release")
    put("rates-fetch", quick.job(), every("1h"), by="release", description="Exchange rates, for the prices")
    put("old-cleanup", quick.job(), cron("0 4 * * 0"), by="release")
    put(LONG, quick.job(HOSTILE), every("1d"), by="release", description=HOSTILE)
