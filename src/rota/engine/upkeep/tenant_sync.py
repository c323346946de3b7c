"""Finishes changes of tenants that another process began and did not finish, so that schedules follow their tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.errors import StoreMoved
from rota.model.tenant import UNSETTLED, UNSETTLED_SCHEDULES
from rota.operations.tenant_changes import settle_schedules, settle_tenant

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.entry import Entry
    from rota.store.contract import Store

PAUSE = 15.0
GRACE_TURNS = 2  # turns before another process's tenant change is finished here


class TenantSync(Service):
    """Runs in every node. Several may finish the same change: every edit is guarded by its schedule's version."""

    name = "tenant sync"

    def __init__(self, store: Store, events: Events, clock: StoreClock, new_id: Callable[[], str]) -> None:
        super().__init__(events, clock)
        self._store = store
        self._new_id = new_id
        self._seen: dict[tuple[str, str, int], int] = {}  # pending changes, and in how many turns they were seen

    def turn(self) -> float:
        marks = [*self._store.list_entries(UNSETTLED).items, *self._store.list_entries(UNSETTLED_SCHEDULES).items]
        self._seen = {_id(mark): self._seen.get(_id(mark), 0) + 1 for mark in marks}
        for mark in marks:
            if self._seen[_id(mark)] >= GRACE_TURNS:
                self._settle(mark)
        return PAUSE

    def _settle(self, mark: Entry) -> None:
        try:
            if mark.kind == UNSETTLED_SCHEDULES:
                settle_schedules(self._store, mark, self._new_id)
                return
            settle_tenant(self._store, mark, mark.data, self._new_id)
        except StoreMoved:
            return  # sealed on purpose
        self.events.emit("tenant.followed", self.clock.now(), tenant=mark.name)


def _id(mark: Entry) -> tuple[str, str, int]:
    return mark.kind, mark.name, mark.version
