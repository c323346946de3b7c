"""The server's clock as this side knows it: its last answer, plus what a clock that cannot be set says has passed."""

from __future__ import annotations

import time

STALE = 5.0  # seconds after which an answer is too old to go by: clocks drift, and can be set


class ServerClock:
    """Never ahead of the server's: an answer is a little old when it arrives."""

    def __init__(self) -> None:
        self._heard: tuple[int, float] | None = None

    def hear(self, now: int) -> None:
        """An answer has just come that says what time it was."""
        self._heard = (now, time.monotonic())

    def forget(self) -> None:
        """The server was out of reach; it may be another one that comes back."""
        self._heard = None

    def guess(self) -> int | None:
        """What time it is there, or None where that is not known well enough."""
        heard = self._heard
        if heard is None:
            return None
        now, at = heard
        passed = time.monotonic() - at
        return None if passed > STALE else now + int(passed * 1e6)
