"""Renews the locks of documents whose handler still runs, in a thread of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.engine.service import Service
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.documents.contract import Source
    from rota.documents.runs import Running
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock

SHARE = 3  # a lock is renewed when a third of its time has passed, so two renewals may fail


class Renewer(Service):
    """Knows which locks are older than a third of their time, and renews those."""

    name = "document renewer"

    def __init__(
        self, source: Source[Any], running: Running, events: Events, clock: StoreClock, *, lock_for: int
    ) -> None:
        super().__init__(events, clock)
        self._source = source
        self._running = running
        self._lock_for = lock_for

    def turn(self) -> float:
        with self._running.writing:
            runs = self._running.with_locks_until(self.clock.now() + self._lock_for - self._lock_for // SHARE)
            if runs:
                renewed = self._source.renew([run.locked for run in runs], self._lock_for)
                for run, locked in zip(runs, renewed, strict=True):
                    run.is_lost = locked is None
                    run.locked = locked or run.locked
        return self._lock_for / SHARE / SECOND / 2
