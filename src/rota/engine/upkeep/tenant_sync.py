"""TenantSync: lets schedules follow their tenants where whoever changed a tenant did not come to the end of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.errors import StoreMoved
from rota.model.tenant import UNSETTLED
from rota.operations.tenant_changes import settle_tenant

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.entry import Entry
    from rota.store.contract import Store

PAUSE = 15.0
PATIENCE = 2  # looks for which a mark is left to the one who set it


class TenantSync(Service):
    """Runs in every node; many at once do no harm, for every edit is guarded by its schedule's version."""

    name = "tenant sync"

    def __init__(self, store: Store, events: Events, clock: StoreClock, new_id: Callable[[], str]) -> None:
        super().__init__(events, clock)
        self._store = store
        self._new_id = new_id
        self._seen: dict[tuple[str, int], int] = {}  # marks by name and version, and how often they were met

    def turn(self) -> float:
        marks = self._store.list_entries(UNSETTLED).items
        self._seen = {_id(mark): self._seen.get(_id(mark), 0) + 1 for mark in marks}
        for mark in marks:
            if self._seen[_id(mark)] >= PATIENCE:
                self._settle(mark)
        return PAUSE

    def _settle(self, mark: Entry) -> None:
        try:
            settle_tenant(self._store, mark, mark.data, self._new_id)
        except StoreMoved:
            return  # it stands still on purpose
        self.events.emit("tenant.followed", self.clock.now(), tenant=mark.name)


def _id(mark: Entry) -> tuple[str, int]:
    return mark.name, mark.version
