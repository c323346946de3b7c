"""Following: schedules taken to what their tenants say, in bounded batches that any process can go on with.

A change of a tenant is written first, with a mark that its schedules are yet to follow. Whoever made the change lets
them follow and takes the mark away; where that process dies half-way, the upkeep of any node finds the mark. A schedule
that is made meanwhile looks at its tenant again once it is kept, so that one of the two sees the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import TenantNotFound
from rota.model.audit_record import Author
from rota.model.edit import with_audit
from rota.model.entry import EntryEdit
from rota.model.tenant import KIND, UNSETTLED, Tenant, derive, unpack_tenant
from rota.store.contract import LARGEST_PAGE, ScheduleFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.model.entry import Entry
    from rota.model.schedule import Schedule, ScheduleSpec
    from rota.store.contract import Store

ROUNDS = 5  # a schedule that keeps changing while it is to follow is taken up again by the next who looks


def read_tenants(store: Store, names: Iterable[str]) -> dict[str, Tenant]:
    """The tenants of these names that exist."""
    wanted = sorted({name for name in names if name})
    return {entry.name: unpack_tenant(entry.data) for entry in store.get_entries(KIND, wanted)} if wanted else {}


def check_tenants(
    store: Store, specs: Mapping[str, ScheduleSpec], coming: Mapping[str, Tenant] | None = None
) -> dict[str, Tenant]:
    """The tenants that schedules name, as they are or are about to be; TenantNotFound where one does not exist."""
    tenants = {**read_tenants(store, [spec.tenant for spec in specs.values()]), **(coming or {})}
    for name, spec in specs.items():
        if spec.tenant and spec.tenant not in tenants:
            raise TenantNotFound(
                f"schedule '{name}' names the tenant {spec.tenant!r}, which does not exist; make it first with "
                f"app.tenants.put({spec.tenant!r}, tz=…) or `rota tenants put {spec.tenant} --tz …`"
            )
    return tenants


def let_follow(store: Store, schedules: Sequence[Schedule], by: str, new_id: Callable[[], str]) -> bool:
    """Take schedules to what their tenants say now; False where one kept changing meanwhile."""
    waiting = list(schedules)
    for _ in range(ROUNDS):
        tenants = read_tenants(store, [schedule.spec.tenant for schedule in waiting])
        now = store.now()
        edits = []
        for schedule in waiting:
            edit = derive(schedule, tenants.get(schedule.spec.tenant), now)
            if edit is not None:
                verb = f"followed tenant {schedule.spec.tenant}" if schedule.spec.tenant else "followed no tenant"
                edits.append(with_audit(edit, schedule, Author(record_id=new_id(), by=by, verb=verb)))
        if not edits:
            return True
        store.edit_schedules(edits)
        waiting = store.get_schedules([edit.id for edit in edits])
    return False


def settle_tenant(store: Store, mark: Entry, by: str, new_id: Callable[[], str]) -> bool:
    """Let all schedules of a marked tenant follow it, a page at a time; the mark goes unless it was set anew."""
    cursor, is_last, is_settled = None, False, True
    while not is_last:
        page = store.list_schedules(ScheduleFilter(tenant=mark.name), cursor=cursor, limit=LARGEST_PAGE)
        is_settled = let_follow(store, page.items, by, new_id) and is_settled
        cursor, is_last = page.cursor, page.cursor is None
    if is_settled:
        store.edit_entries([EntryEdit(kind=UNSETTLED, name=mark.name, expect_version=mark.version, data=None)])
    return is_settled


def mark_unsettled(store: Store, name: str, by: str) -> EntryEdit:
    """The edit that says that a tenant's schedules are yet to follow a change, and who made it."""
    marks = store.get_entries(UNSETTLED, [name])
    return EntryEdit(kind=UNSETTLED, name=name, expect_version=marks[0].version if marks else 0, data=by)
