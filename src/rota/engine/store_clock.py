"""The store's clock as a node knows it: the last reply's time, plus what has passed since on the monotonic clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class StoreClock:
    """Nodes with wrong clocks neither fire early nor steal leases: they never use their own."""

    def __init__(
        self, ask: Callable[[], int], monotonic: Callable[[], float] = time.monotonic, *, step: int = 1
    ) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._behind = (step - 1) / 1e6  # seconds that a reply may be behind the store's true time
        self._offset: float | None = None

    def sync(self, now: int, asked_at: float | None = None) -> None:
        """Remember what a reply said. It was true at some time since it was asked: a late one moves nothing back."""
        least = now / 1e6 - self._monotonic()
        most = least if asked_at is None else now / 1e6 + self._behind - asked_at
        self._offset = least if self._offset is None else min(max(self._offset, least), most)

    def now(self) -> int:
        if self._offset is None:
            self.sync(self._ask())
        assert self._offset is not None  # noqa: S101 - narrows the type
        return round((self._monotonic() + self._offset) * 1e6)

    def monotonic(self) -> float:
        return self._monotonic()
