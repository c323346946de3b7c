"""Applies the settings of tenants to their schedules, in bounded batches that any process can continue.

A change of a tenant is recorded as pending before it is written. The process that makes the change updates the
schedules and deletes the record. If that process dies half-way, the tenant sync of any node finds the record and
finishes. The same holds for schedules that are made or get another tenant: a record of their names is written before
they are, so that they follow a tenant that changes meanwhile, and leave the pause of the tenant that they had before.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from rota.errors import TenantNotFound
from rota.model.audit_record import Author
from rota.model.entry import Entry, EntryEdit
from rota.model.schedules.edit import with_audit
from rota.model.tenant import KIND, UNSETTLED, UNSETTLED_SCHEDULES, Tenant, derive, unpack_tenant
from rota.sentences import Sentence, sentence
from rota.store.contract import LARGEST_PAGE, ScheduleFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.model.schedules.schedule import Schedule, ScheduleSpec
    from rota.store.contract import Store

ROUNDS = 5  # a schedule that still changes after so many rounds is left to the next process


def read_tenants(store: Store, names: Iterable[str]) -> dict[str, Tenant]:
    """The tenants of these names that exist."""
    wanted = sorted({name for name in names if name})
    return {entry.name: unpack_tenant(entry.data) for entry in store.get_entries(KIND, wanted)} if wanted else {}


def similar_tenant(store: Store, name: str, coming: Iterable[str] = ()) -> str | None:
    """The tenant that was probably meant by a name that none has, of those that exist or are about to."""
    known = {*coming, *(entry.name for entry in store.list_entries(KIND, limit=LARGEST_PAGE).items)}
    return next(iter(get_close_matches(name, sorted(known), n=1)), None)


def check_tenants(
    store: Store, specs: Mapping[str, ScheduleSpec], coming: Mapping[str, Tenant] | None = None
) -> dict[str, Tenant]:
    """The tenants that schedules name, as they are or are about to be; TenantNotFound if one does not exist."""
    tenants = {**read_tenants(store, [spec.tenant for spec in specs.values()]), **(coming or {})}
    for name, spec in specs.items():
        if spec.tenant and spec.tenant not in tenants:
            raise TenantNotFound(_missing_of(name, spec.tenant, similar_tenant(store, spec.tenant, coming or ())))
    return tenants


def _missing_of(schedule: str, tenant: str, close: str | None) -> Sentence:
    if close:
        return sentence(
            "missing.tenant_of_meant",
            "schedule '{schedule}' names the tenant {tenant!r}, which does not exist; did you mean {close}? A new one "
            "needs `rota tenants put {tenant} --tz …` first",
            schedule=schedule,
            tenant=tenant,
            close=close,
        )
    return sentence(
        "missing.tenant_of",
        "schedule '{schedule}' names the tenant {tenant!r}, which does not exist; make it first "
        "with app.tenants.put({tenant!r}, tz=…), `rota tenants put {tenant} --tz …`, or under "
        "`tenants:` in rota.yaml",
        schedule=schedule,
        tenant=tenant,
    )


def let_follow(store: Store, schedules: Sequence[Schedule], by: str, new_id: Callable[[], str]) -> bool:
    """Apply the tenants' settings of now to schedules; False if one kept changing meanwhile."""
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


def settle_tenant(store: Store, pending: Entry, by: str, new_id: Callable[[], str]) -> bool:
    """Apply a tenant's pending change to its schedules, a page at a time. It stays if it was added again meanwhile."""
    cursor, is_last, is_settled = None, False, True
    while not is_last:
        page = store.list_schedules(ScheduleFilter(tenant=pending.name), cursor=cursor, limit=LARGEST_PAGE)
        is_settled = let_follow(store, page.items, by, new_id) and is_settled
        cursor, is_last = page.cursor, page.cursor is None
    if is_settled:
        store.edit_entries([EntryEdit(kind=UNSETTLED, name=pending.name, expect_version=pending.version, data=None)])
    return is_settled


def pending_change(store: Store, name: str, by: str) -> EntryEdit:
    """The edit that records that a tenant's schedules do not follow a change yet, and who made it."""
    found = store.get_entries(UNSETTLED, [name])
    return EntryEdit(kind=UNSETTLED, name=name, expect_version=found[0].version if found else 0, data=by)


def add_pending_change(store: Store, names: Sequence[str], by: str, new_id: Callable[[], str]) -> Entry:
    """Record, before they are written, that these schedules do not follow their tenants yet."""
    data = msgspec.json.encode((by, list(names))).decode()
    entry = Entry(kind=UNSETTLED_SCHEDULES, name=new_id(), version=1, data=data)
    store.edit_entries([EntryEdit(kind=entry.kind, name=entry.name, expect_version=0, data=data)])
    return entry


def settle_schedules(store: Store, pending: Entry, new_id: Callable[[], str]) -> bool:
    """Let the schedules of a record follow their tenants, and delete the record."""
    by, names = msgspec.json.decode(pending.data, type=tuple[str, list[str]])
    is_settled = let_follow(store, store.get_schedules(names), by, new_id)
    if is_settled:
        store.edit_entries([EntryEdit(kind=pending.kind, name=pending.name, expect_version=pending.version, data=None)])
    return is_settled
