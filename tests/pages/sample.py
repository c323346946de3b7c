"""A shop with something of everything: jobs in every state, schedules that run, fail, are paused and are late."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pages.sample_system import declare_system, fill_system
from rota import App, cron, every

if TYPE_CHECKING:
    from collections.abc import Iterator


def declare(app: App) -> None:
    @app.task(name="payments.charge", queue="payments", retries=0)
    def charge(order: int, cents: int) -> str:
        print(f"charging order {order}")  # noqa: T201 - into its log
        if order % 3 == 0:
            raise ValueError(f"no funds for {cents / 100}")
        return f"paid {cents}"

    @app.task(name="mail.send", queue="mail", retries=3)
    def send(to: str, *, subject: str = "", password: str = "") -> dict[str, Any]:
        print(f"mail to {to}: {subject}{' (secret)' if password else ''}")  # noqa: T201
        return {"to": to, "sent": True}

    @app.schedule(every("10m"), id="stock-levels")
    @app.task(name="stock.levels")
    def levels() -> None: ...

    @app.schedule(cron("0 9 * * mon-fri", tz="America/New_York"), id="mail-digest", queue="mail")
    @app.task(name="mail.digest")
    def digest() -> None: ...

    @app.schedule(every("1h"), id="invoices-sync")
    @app.task(name="invoices.sync", retries=0)
    def sync() -> None:
        raise ConnectionError("bank.example:443 did not answer in 30 s")

    @app.schedule(cron("30 2 * * *", tz="Europe/Riga"), id="nightly-report")
    @app.task(name="reports.build")
    def report() -> None: ...

    declare_system(app)


def fill(app: App) -> dict[str, str]:
    """Jobs in every state; says the ids of some."""
    tasks = app.__rota_tasks__
    charge, send = tasks.get("payments.charge"), tasks.get("mail.send")
    charges = [charge.enqueue(number, 100 * number + 84) for number in range(1, 10)]
    mails = [send.enqueue(f"ann{number}@example.org", subject="Your order") for number in range(4)]
    with app.running(queues=("payments", "mail", "default"), concurrency=4):
        sync = app.schedules.run_now("invoices-sync")
        for job in (*charges, *mails, sync):
            app.jobs.wait(job.id, 60)
    queued = send.enqueue("bob@example.org", subject="Hello", password="hunter2")  # noqa: S106 - hidden wherever it is shown
    scheduled = send.using(delay="2h").enqueue("eve@example.org", subject="Later")
    cancelled = send.enqueue("dan@example.org")
    app.jobs.cancel(cancelled.id, reason="not wanted any more")
    app.schedules.pause("nightly-report", reason="the warehouse moves")
    fill_system(app)
    return {
        "failed": charges[2].id,
        "succeeded": mails[0].id,
        "queued": queued.id,
        "scheduled": scheduled.id,
        "cancelled": cancelled.id,
    }


@contextmanager
def sample_app(url: str = "memory://") -> Iterator[tuple[App, dict[str, str]]]:
    app = App(url, name="shop", version="2.4")
    declare(app)
    yield app, fill(app)
    app.close()
