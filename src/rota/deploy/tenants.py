"""Applies the tenants that rota.yaml declares to a store: only if they differ, and only by the file that owns them.

An entry beside each names the app whose file declared it, and the version: an older version changes nothing, and
another app's file does not change it. A tenant that is removed from the file stays: it may have schedules.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from rota.model.entry import EntryEdit
from rota.model.schedules.origin import describe_origin, is_older
from rota.model.schedules.schedule import Origin
from rota.model.schedules.wording import OF_TENANT, contents
from rota.model.tenant import KIND, Tenant, tenant_facts, unpack_tenant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.client.tenants import Tenants
    from rota.config.declared import FileTenant
    from rota.model.entry import Entry
    from rota.store.contract import Store

FILED = "filed_tenant"  # the kind of entry that names the app whose file declares a tenant
BATCH = 500

log = logging.getLogger("rota.app")

_origin_decoder = msgspec.json.Decoder(Origin)


class PlannedTenant(Struct, frozen=True, kw_only=True):
    """The planned change of one tenant. Those that stay as they are have none."""

    name: str
    kind: Literal["add", "change", "newer", "refused"]
    says: list[str]
    after: Tenant


def bring_tenants(
    store: Store, tenants: Tenants, declared: Sequence[FileTenant], origin: Origin, *, by: str = ""
) -> int:
    """Put the tenants that differ. Returns how many."""
    changed = 0
    for one, before, entry in _read(store, declared):
        planned = _plan(one, before, entry, origin)
        if planned is not None and planned.kind == "refused":
            log.warning("%s: tenants.%s: %s", one.place, one.name, planned.says[0])
        elif planned is None or planned.kind != "newer":
            _record_owner(store, one.name, entry, origin)
            if planned is not None:
                tenants.put(one.name, **one.options, by=by)
                changed += 1
    return changed


def plan_tenants(store: Store, declared: Sequence[FileTenant], origin: Origin) -> list[PlannedTenant]:
    """The changes that `bring_tenants` would make."""
    found = [_plan(one, before, entry, origin) for one, before, entry in _read(store, declared)]
    return [planned for planned in found if planned is not None]


def tenants_of(planned: Sequence[PlannedTenant]) -> dict[str, Tenant]:
    """The tenants after the changes."""
    return {one.name: one.after for one in planned if one.kind in {"add", "change"}}


def tenant_from(one: FileTenant, before: Tenant | None = None) -> Tenant:
    """The tenant that the file declares. Its operators decide about a pause."""
    return Tenant(**one.options, pause=before.pause if before else None)


def _plan(one: FileTenant, before: Tenant | None, entry: Entry | None, origin: Origin) -> PlannedTenant | None:
    after = tenant_from(one, before)
    if tenant_facts(before) == tenant_facts(after):
        return None
    owner = _origin_decoder.decode(entry.data) if entry else origin
    if before is None:
        return PlannedTenant(name=one.name, kind="add", says=_said(after), after=after)
    if owner.app != origin.app:
        says = [f"{describe_origin(owner)} declares it otherwise, so it is left alone; declare it in one of them"]
        return PlannedTenant(name=one.name, kind="refused", says=says, after=after)
    if is_older(origin.version, owner.version):
        says = [f"version {owner.version} of its app has set it; an older one changes nothing"]
        return PlannedTenant(name=one.name, kind="newer", says=says, after=after)
    return PlannedTenant(name=one.name, kind="change", says=_differences(before, after), after=after)


def _said(tenant: Tenant) -> list[str]:
    """The settings of a new tenant that differ from the defaults."""
    return [str(line) for line in contents(tenant_facts(tenant), OF_TENANT)]


def _differences(before: Tenant, after: Tenant) -> list[str]:
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    names = [name for name in tenant_facts(before) | tenant_facts(after) if old[name] != new[name]]
    return [f"{name}: {_shown(old[name])} → {_shown(new[name])}" for name in names]


def _shown(value: Any) -> str:
    return "none" if value in {None, ""} else str(value)


def _read(store: Store, declared: Sequence[FileTenant]) -> Iterator[tuple[FileTenant, Tenant | None, Entry | None]]:
    """Each with its stored tenant and entry, read in few calls."""
    for start in range(0, len(declared), BATCH):
        batch = declared[start : start + BATCH]
        names = [one.name for one in batch]
        known = {entry.name: unpack_tenant(entry.data) for entry in store.get_entries(KIND, names)}
        entries = {entry.name: entry for entry in store.get_entries(FILED, names)}
        for one in batch:
            yield one, known.get(one.name), entries.get(one.name)


def _record_owner(store: Store, name: str, entry: Entry | None, origin: Origin) -> None:
    """Record the app and the version that own it; if another process was first, its record is equivalent."""
    owner = _origin_decoder.decode(entry.data) if entry else None
    if owner is not None and (owner.app != origin.app or not is_older(owner.version, origin.version)):
        return
    data = msgspec.json.encode(origin).decode()
    store.edit_entries([EntryEdit(kind=FILED, name=name, expect_version=entry.version if entry else 0, data=data)])
