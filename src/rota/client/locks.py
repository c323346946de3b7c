"""Gives one owner at a time a named lock, across processes; token-checked and fenced.

    with app.lock("reindex", ttl="60s") as lock:
        ...
        lock.extend()

A lock that is not extended in time is lost, and another owner may acquire it. Pass `lock.fence` to the resource that
the lock protects, so that the resource can refuse an owner that is late.
"""

from __future__ import annotations

import logging
import time
from secrets import token_hex
from typing import TYPE_CHECKING, Self

from rota.errors import LockHeld, LockLost
from rota.model.micros import span_of, timeout_of
from rota.model.names import check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from rota.store.contract import Store

log = logging.getLogger("rota.lock")

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5


class Lock:
    """A named lock; made by app.lock()."""

    def __init__(
        self,
        store: Callable[[], Store],
        name: str,
        ttl: str | timedelta,
        wait: str | timedelta | None = None,
    ) -> None:
        self.name = check_key(name)
        self.fence = 0  # rises with every owner
        self._store = store
        self._ttl = span_of(ttl)
        self._wait = 0.0 if wait is None else timeout_of(wait)
        self._token = token_hex(16)

    def acquire(self) -> bool:
        """Acquire the lock, waiting up to the given time; False if another owner has it."""
        pauses = self.pauses()
        while not self.try_acquire():
            pause = next(pauses, None)
            if pause is None:
                log.debug("lock %s is held elsewhere", self.name)
                return False
            time.sleep(pause)
        return True

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free now."""
        fence = self._store().change_lock(self.name, "acquire", self._token, self._ttl)
        if fence is None:
            return False
        self.fence = fence
        return True

    def pauses(self) -> Iterator[float]:
        """Seconds to wait between two tries, until the given time is over."""
        deadline = time.monotonic() + self._wait
        pause = FIRST_PAUSE
        while (left := deadline - time.monotonic()) > 0:
            yield min(pause, left)
            pause = min(pause * 2, LONGEST_PAUSE)

    def held_elsewhere(self) -> LockHeld:
        return LockHeld(f"lock '{self.name}' is held by somebody else; wait= says how long to wait for it")

    def extend(self) -> None:
        """Hold the lock for another ttl, from now; LockLost if another owner has acquired it."""
        if self._store().change_lock(self.name, "extend", self._token, self._ttl) is None:
            raise LockLost(f"lock '{self.name}' was not extended in time and may belong to somebody else now; stop")

    def release(self) -> bool:
        """Release it; False if it was lost meanwhile."""
        released = self._store().change_lock(self.name, "release", self._token) is not None
        if not released:
            log.warning("lock %s was lost before it was released: its ttl was too short", self.name)
        return released

    def __enter__(self) -> Self:
        if not self.acquire():
            raise self.held_elsewhere()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
