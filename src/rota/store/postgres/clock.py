"""Estimates the server's clock: its last answer, plus the time that has passed on a clock that cannot be set."""

from __future__ import annotations

import time

STALE = 5.0  # seconds after which an answer is too old: clocks drift, and can be set


class ServerClock:
    """Never ahead of the server's clock: an answer is a little old when it arrives."""

    def __init__(self) -> None:
        self._answer: tuple[int, float] | None = None

    def set(self, now: int) -> None:
        """An answer of the server with its time has just arrived."""
        self._answer = (now, time.monotonic())

    def forget(self) -> None:
        """The server was out of reach, and another one may come back; or its clock was set."""
        self._answer = None

    def estimate(self) -> int | None:
        """The server's time, or None if it is not known well enough."""
        if self._answer is None:
            return None
        now, at = self._answer
        passed = time.monotonic() - at
        return None if passed > STALE else now + int(passed * 1e6)
