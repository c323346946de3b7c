"""Defines the sample app: a small shop whose jobs recur, wait, run at the same time, fail and are retried."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING

from rota import App, cron, current_job, every

if TYPE_CHECKING:
    from rota.store.contract import Store

PARTS = 4  # of an export, a second each


class CardDeclined(Exception):
    """No second try helps."""


def make_app(store: str | Store | None = None) -> App:
    """The shop, on a store; nothing runs until it is started."""
    app = App(store, name="demo")
    _sell(app)
    _keep_shop(app)
    return app


def _sell(app: App) -> None:
    """An order every two seconds: charged at once, with trouble now and then; its receipt follows a little later."""
    numbers = count(1001)

    @app.task(name="receipt")
    def receipt(order: int) -> str:
        time.sleep(0.05)
        return f"sent for order {order}"

    @app.task(name="charge", queue="payments", priority="high", backoff="2s", give_up_on=(CardDeclined,))
    def charge(order: int, cents: int) -> str:
        time.sleep(0.2)
        if order % 5 == 0:
            raise CardDeclined(f"no funds for {cents / 100:.2f}")
        if order % 3 == 0 and current_job.attempt == 1:
            raise TimeoutError("no answer")
        receipt.using(delay="3s").enqueue(order)
        return f"paid {cents / 100:.2f}"

    @app.schedule(every("2s"), id="checkout", description="A customer buys something")
    @app.task(name="checkout")
    def checkout() -> int:
        order = next(numbers)
        charge.enqueue(order, 499 + order * 37 % 2000)
        return order


def _keep_shop(app: App) -> None:
    """Define the background work of the shop."""

    @app.task(name="resize")
    def resize(photo: str, width: int) -> str:
        time.sleep(0.4 + width / 2000)
        return f"{width}/{photo}"

    @app.schedule(every("6s"), id="photos", description="Photos come in, and are resized side by side")
    @app.task(name="photos")
    def photos() -> None:
        app.enqueue_many([resize.job("cat.jpg", width) for width in (320, 640, 1280)])

    @app.schedule(every("5s"), id="rates", description="A coroutine asks several banks at once")
    @app.task(name="rates")
    async def rates() -> list[str]:
        return list(await asyncio.gather(*(_rate(currency) for currency in ("USD", "INR", "JPY"))))

    @app.schedule(every("20s"), id="export", run_on_start=True, description="Takes its time, and says how far it is")
    @app.task(name="export")
    def export() -> None:
        for part in range(1, PARTS + 1):
            time.sleep(1)
            print(f"part {part} of {PARTS} is written")  # noqa: T201 - kept as the job's log
            current_job.progress(part, PARTS)

    @app.schedule(cron("* * * * *"), id="digest", run_on_start=True, description="Once a minute")
    @app.task(name="digest")
    def digest() -> str:
        time.sleep(0.1)
        return "all is well"


async def _rate(currency: str) -> str:
    await asyncio.sleep(0.3)
    return f"EUR/{currency}"
