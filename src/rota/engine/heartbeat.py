"""Writes every 5 s that this node is alive and what it runs, and updates its scheduler's partition."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from rota.engine.scheduling.partition import partition_of
from rota.engine.service import Service

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.scheduling.scheduler import Scheduler
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.capacity import HeldRuns
    from rota.store.contract import Node, Store

INTERVAL = 5.0  # seconds


class Heartbeat(Service):
    """Keeps the node's record in the store fresh."""

    name = "heartbeat"

    def __init__(
        self,
        store: Store,
        events: Events,
        clock: StoreClock,
        record: Node,
        *,
        runs: HeldRuns | None = None,
        scheduler: Scheduler | None = None,
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._record = record
        self._runs = runs
        self._scheduler = scheduler
        self._is_draining = False
        self._woken = threading.Event()

    def show_draining(self) -> None:
        """Write at once, and with each heartbeat from now on, that the node drains."""
        self._is_draining = True
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def turn(self) -> float:
        started_at = self._record.started_at or self.clock.now()
        running = 0 if self._runs is None else len(self._runs)
        self._record = msgspec.structs.replace(
            self._record, started_at=started_at, running=running, is_draining=self._is_draining
        )
        sent_at = self.clock.monotonic()
        self.clock.sync(self._store.record_heartbeat(self._record), sent_at)
        if self._scheduler is not None:
            self._scheduler.partition = partition_of(self._record.id, self._store.list_nodes(), self.clock.now())
        return INTERVAL
