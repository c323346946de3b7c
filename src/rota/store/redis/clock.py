"""Estimates the server's clock between its replies."""

from __future__ import annotations

import time


class ServerClock:
    """The server's clock as its replies say: never ahead of it, unless it was set back since the last reply."""

    def __init__(self) -> None:
        self._offset = 0  # microseconds: the server's clock minus our monotonic one

    def now(self) -> int:
        return _monotonic() + self._offset

    def update(self, now: int) -> None:
        """Take the time of a reply. A reply takes time to arrive: the greatest difference is the most exact."""
        self._offset = max(self._offset, now - _monotonic())

    def reset(self, now: int) -> None:
        """Forget earlier replies: the server's clock was set back."""
        self._offset = now - _monotonic()


def _monotonic() -> int:
    return time.monotonic_ns() // 1000
