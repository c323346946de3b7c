"""Estimates a server's clock between replies, and asks it again once a minute."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rota.engine.store_clock import StoreClock

if TYPE_CHECKING:
    from collections.abc import Callable

ASK_EVERY = 60.0  # seconds; two clocks drift apart by a few milliseconds in that time


class ServerClock:
    """The time of the last reply, plus the monotonic time since then."""

    def __init__(self, ask: Callable[[], int], *, step: int = 1) -> None:
        self._ask = ask
        self._clock = StoreClock(ask, step=step)
        self._asks_at = 0.0

    def now(self) -> int:
        asked_at = time.monotonic()
        if asked_at >= self._asks_at:
            self._clock.sync(self._ask(), asked_at)
            self._asks_at = asked_at + ASK_EVERY
        return self._clock.now()

    def sync(self, now: int, asked_at: float) -> None:
        """Take over the time of a reply to a call that began at that monotonic time."""
        self._clock.sync(now, asked_at)
        self._asks_at = max(self._asks_at, asked_at + ASK_EVERY)
