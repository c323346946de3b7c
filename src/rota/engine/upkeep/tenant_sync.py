"""Finishes changes of tenants that another process began and did not finish, so that schedules follow their tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.errors import StoreSealed
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
        changes = [
            *self._store.list_entries(UNSETTLED).items,
            *self._store.list_entries(UNSETTLED_SCHEDULES).items,
        ]
        self._seen = {_id(pending): self._seen.get(_id(pending), 0) + 1 for pending in changes}
        for pending in changes:
            if self._seen[_id(pending)] >= GRACE_TURNS:
                self._settle(pending)
        return PAUSE

    def _settle(self, pending: Entry) -> None:
        try:
            if pending.kind == UNSETTLED_SCHEDULES:
                settle_schedules(self._store, pending, self._new_id)
                return
            settle_tenant(self._store, pending, pending.data, self._new_id)
        except StoreSealed:
            return  # sealed on purpose
        self.events.emit("tenant.followed", self.clock.now(), tenant=pending.name)


def _id(pending: Entry) -> tuple[str, str, int]:
    return pending.kind, pending.name, pending.version
