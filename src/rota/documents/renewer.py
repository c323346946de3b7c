"""Renews the locks of documents whose handler still runs, in a thread of its own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from rota.engine.service import Service
from rota.errors import StoreError, StoreSealed, StoreUnavailable
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.documents.contract import Source
    from rota.documents.runs import DocumentRun, Running
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock

log = logging.getLogger("rota.documents")

MAX_BATCH = 500  # locks renewed per call
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
        for start in range(0, len(runs), MAX_BATCH):
            self._renew(runs[start : start + MAX_BATCH])
        return self._lock_for / SHARE / SECOND / 2

    def _renew(self, runs: list[DocumentRun]) -> None:
        """Renew a batch; one by one if the source refuses it, so that one document does not cost the others' locks."""
        try:
            self._renew_together(runs)
        except (StoreUnavailable, StoreSealed):
            raise
        except StoreError as err:
            if len(runs) == 1:
                name, id_ = self._source.name, runs[0].locked.id
                log.error("%s refuses to renew the lock of %r: %s", name, id_, err)  # noqa: TRY400 - it says enough
                return
            for run in runs:
                self._renew([run])

    def _renew_together(self, runs: list[DocumentRun]) -> None:
        with self._running.writing:
            going_on = [run for run in runs if run.outcome is None]
            renewed = self._source.renew([run.locked for run in going_on], self._lock_for) if going_on else []
            for run, locked in zip(going_on, renewed, strict=True):
                run.is_lost = locked is None
                run.locked = locked or run.locked
