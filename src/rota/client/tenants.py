"""Defines app.tenants, which makes, changes, pauses and removes tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.errors import Refused, TenantNotFound, VersionConflict
from rota.inspector.changes import Change, list_changes
from rota.inspector.tenant_view import TenantView
from rota.keywords import known_keywords_of_verbs
from rota.model.audit_record import Author, audit_record_of, subject_of
from rota.model.entry import Entry, EntryEdit
from rota.model.micros import optional_instant
from rota.model.names import check_name, check_priority
from rota.model.option_names import FOR_VERBS
from rota.model.schedules.never import check_pause_end
from rota.model.schedules.schedule import Pause, paused_since
from rota.model.secrets.redaction import DEFAULT
from rota.model.tenant import (
    KIND,
    UNSETTLED,
    OnZoneChange,
    Tenant,
    check_tenant,
    pack_tenant,
    read_tenant,
    tenant_facts,
)
from rota.operations.audit import whoami
from rota.operations.tenant_changes import pending_change, settle_tenant, similar_tenant
from rota.sentences import sentence
from rota.store.contract import Page, ScheduleFilter, check_limit
from rota.triggers.zone import find_zone, zone_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rota.store.contract import Store

TRIES = 5


@known_keywords_of_verbs("app.tenants", FOR_VERBS)
class Tenants:
    """app.tenants"""

    def __init__(self, store: Callable[[], Store], new_id: Callable[[], str]) -> None:
        self._store = store
        self._new_id = new_id

    def put(
        self,
        name: str,
        *,
        tz: str,
        queue: str | None = None,
        priority: int | str | None = None,
        on_zone_change: OnZoneChange = "recompute",
        description: str = "",
        by: str = "",
        expect_version: int | None = None,
    ) -> TenantView:
        """Add a tenant, or change it; its schedules are updated immediately.

        A new timezone holds from now on, and no local date runs twice; with on_zone_change="keep_next", the run that
        was announced in the old zone still happens at its instant.
        """
        said = check_tenant(
            Tenant(
                tz=_zone(tz),
                queue=None if queue is None else check_name("queue", queue),
                priority=None if priority is None else check_priority(priority),
                on_zone_change=on_zone_change,
                description=description,
            )
        )

        def decide(before: Tenant | None, now: int) -> Tenant:
            since = before.created_at if before else now
            pause = before.pause if before else None
            return msgspec.structs.replace(said, created_at=since, updated_at=now, pause=pause)

        return self._change(check_name("tenant", name), decide, "", by, expect_version, may_create=True)

    def get(self, name: str) -> TenantView:
        """The tenant of that name; TenantNotFound if there is none."""
        return TenantView(self._read(name))

    def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[TenantView]:
        """Tenants by name, a page at a time."""
        page = self._store().list_entries(KIND, cursor=cursor, limit=check_limit(limit))
        return Page([TenantView(entry) for entry in page.items], page.cursor)

    def pause(
        self,
        name: str,
        *,
        until: datetime | None = None,
        reason: str = "",
        by: str = "",
        expect_version: int | None = None,
    ) -> TenantView:
        """Pause all its schedules, besides their own pauses; their waiting jobs are cancelled."""
        end = optional_instant("until", until)

        def decide(before: Tenant | None, now: int) -> Tenant | None:
            check_pause_end(end, now)
            if before is None:
                return None
            pause = Pause(paused_since(before.pause, now), reason=reason, by=by, until=end, tenant=name)
            return msgspec.structs.replace(before, updated_at=now, pause=pause)

        return self._change(name, decide, "paused", by, expect_version)

    def resume(self, name: str, *, by: str = "", expect_version: int | None = None) -> TenantView:
        """Let its schedules fire again, except those that have a pause of their own."""

        def decide(before: Tenant | None, now: int) -> Tenant | None:
            if before is None or before.pause is None:
                return before
            return msgspec.structs.replace(before, updated_at=now, pause=None)

        return self._change(name, decide, "resumed", by, expect_version)

    def remove(self, name: str, *, by: str = "", expect_version: int | None = None) -> bool:
        """Remove a tenant that no schedule follows; no error if there is none."""
        store = self._store()
        found = store.get_entries(KIND, [name])
        if not found:
            return False
        _check_version(found[0], name, expect_version)
        followers = store.list_schedules(ScheduleFilter(tenant=name), limit=1).items
        if followers:
            raise Refused(
                sentence(
                    "refused.tenant_schedules",
                    "tenant '{tenant}' still has schedules (one is '{schedule}'); remove them first, or give "
                    "them another tenant",
                    tenant=name,
                    schedule=followers[0].id,
                )
            )
        edit = EntryEdit(kind=KIND, name=name, expect_version=found[0].version, data=None)
        if store.edit_entries([self._noted(edit, read_tenant(found[0].data)[0], None, "removed", by)]):
            raise VersionConflict(
                sentence(
                    "refused.tenant_changed",
                    "tenant '{tenant}' was changed by somebody else meanwhile; look at it again",
                    tenant=name,
                )
            )
        return True

    def changes(self, name: str, *, limit: int = 50, cursor: str | None = None) -> Page[Change]:
        """The audit records of the tenant, newest first."""
        return list_changes(self._store(), DEFAULT, subject_of(KIND, name), limit=limit, cursor=cursor)

    def _change(
        self,
        name: str,
        decide: Callable[[Tenant | None, int], Tenant | None],
        verb: str,
        by: str,
        expect_version: int | None,
        *,
        may_create: bool = False,
    ) -> TenantView:
        """Decide on the stored tenant, apply the change if it is unchanged, and update its schedules."""
        store = self._store()
        for _ in range(TRIES):
            found = store.get_entries(KIND, [name])
            if not found and not may_create:
                raise _not_found(store, name)
            _check_version(found[0] if found else None, name, expect_version)
            before, problem = read_tenant(found[0].data) if found else (None, "")
            if problem and not may_create:
                raise Refused(f"tenant '{name}' {problem}; put it again, or remove it")
            after = decide(before, store.now())
            if after is None or tenant_facts(after) == tenant_facts(before):
                return TenantView(found[0])
            if self._apply(name, found[0].version if found else 0, before, after, verb, by):
                return self.get(name)
        raise VersionConflict(
            sentence("refused.tenant_changing", "tenant '{tenant}' kept changing; try again", tenant=name)
        )

    def _apply(self, name: str, version: int, before: Tenant | None, after: Tenant, verb: str, by: str) -> bool:
        store = self._store()
        said = verb or ("created" if before is None else "changed")
        store.edit_entries([pending_change(store, name, by or whoami())])  # another's pending change is as good
        edit = EntryEdit(kind=KIND, name=name, expect_version=version, data=pack_tenant(after))
        if store.edit_entries([self._noted(edit, before, after, said, by)]):
            return False
        for pending in store.get_entries(UNSETTLED, [name]):
            settle_tenant(store, pending, by or whoami(), self._new_id)
        return True

    def _noted(self, edit: EntryEdit, before: Tenant | None, after: Tenant | None, verb: str, by: str) -> EntryEdit:
        author = Author(record_id=self._new_id(), by=by or whoami(), verb=verb)
        subject = subject_of(KIND, edit.name)
        audit = audit_record_of(author, subject, tenant_facts(before), tenant_facts(after), self._store().now())
        return msgspec.structs.replace(edit, audit=audit)

    def _read(self, name: str) -> Entry:
        found = self._store().get_entries(KIND, [name])
        if not found:
            raise _not_found(self._store(), name)
        return found[0]


def _zone(tz: object) -> str:
    name = zone_name(tz) or "UTC"
    find_zone(name)
    return name


def _not_found(store: Store, name: str) -> TenantNotFound:
    close = similar_tenant(store, name)
    if close is not None:
        meant = sentence(
            "missing.tenant_meant",
            "no tenant has the name {tenant!r}; did you mean {close}?",
            tenant=name,
            close=close,
        )
        return TenantNotFound(meant)
    return TenantNotFound(
        sentence(
            "missing.tenant",
            "no tenant has the name {tenant!r}; make it with app.tenants.put({tenant!r}, tz=…)",
            tenant=name,
        )
    )


def _check_version(entry: Entry | None, name: str, expect: int | None) -> None:
    version = entry.version if entry else 0
    if version and expect == 0:
        raise VersionConflict(
            sentence(
                "refused.tenant_exists",
                "there is a tenant '{tenant}' already, in version {version}",
                tenant=name,
                version=version,
            )
        )
    if expect is not None and version != expect:
        raise VersionConflict(
            sentence(
                "refused.tenant_version",
                "tenant '{tenant}' has version {version}, not {expect}: somebody changed it first",
                tenant=name,
                version=version,
                expect=expect,
            )
        )
