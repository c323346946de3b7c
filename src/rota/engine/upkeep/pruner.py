"""Deletes expired jobs, occurrences, nodes and audit records in small batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.errors import StoreSealed

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.store.contract import Retention, Store

BATCH = 500
PAUSE = 60.0
DOUBT = 600.0  # seconds without deletions after the store's clock was set ahead: it may be wrong
SHORT_PAUSE = 0.05  # seconds between two full batches, so that other writers get their turn


class Pruner(Service):
    """Runs in every node. Several may run at once."""

    name = "pruner"

    def __init__(self, store: Store, events: Events, clock: StoreClock, *, retention: Retention) -> None:
        super().__init__(events, clock)
        self._store = store
        self._retention = retention

    def turn(self) -> float:
        asked_at = self.clock.monotonic()
        self.clock.sync(self._store.now(), asked_at)
        if self.clock.was_set_ahead_within(DOUBT):
            return PAUSE
        try:
            pruned = self._store.prune(self._retention, BATCH)
        except StoreSealed:
            return PAUSE  # sealed on purpose; worker and scheduler emit that
        if pruned.total:
            self.events.emit("pruned", self.clock.now(), jobs=pruned.jobs, occurrences=pruned.occurrences)
        return SHORT_PAUSE if pruned.jobs >= BATCH else PAUSE
