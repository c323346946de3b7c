"""Creates, changes, pauses and removes tenants over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from rota.errors import BadTrigger, TenantNotFound
from rota.inspector.facts.change import ChangeFacts, change_facts
from rota.inspector.facts.tenant import TenantFacts, tenant_facts
from rota.model.tenant import OnZoneChange
from rota.store.contract import Page
from rota.web.refusals import Refusal, at_fault
from rota.web.route import Answer, Ask, Route
from rota.web.types import Body, Name, NamesQuery, NotesQuery, PauseBody, Priority, Text, Zone

if TYPE_CHECKING:
    from rota.inspector.tenant_view import TenantView


class TenantPath(Struct, frozen=True):
    """Which tenant."""

    tenant: Name


class TenantBody(Body, frozen=True, kw_only=True):
    """What its schedules take over from it, where they do not say it themselves."""

    tz: Zone
    queue: Name | None = None
    priority: Priority | None = None
    on_zone_change: OnZoneChange = "recompute"
    description: Text = ""


class NewTenantBody(TenantBody, frozen=True, kw_only=True):
    """A tenant under a new name."""

    name: Name


class TenantPatch(Body, frozen=True, kw_only=True):
    """The fields to change; the others stay."""

    tz: Zone | UnsetType = UNSET
    queue: Name | UnsetType | None = UNSET
    priority: Priority | UnsetType | None = UNSET
    on_zone_change: OnZoneChange | UnsetType = UNSET
    description: Text | UnsetType = UNSET


FIELDS = TenantBody.__struct_fields__


def list_tenants(ask: Ask) -> Page[TenantFacts]:
    page = ask.app.tenants.list(limit=ask.query.limit, cursor=ask.query.cursor)
    now = ask.app.open().now()
    return Page([tenant_facts(view, now) for view in page.items], page.cursor)


def get_tenant(ask: Ask) -> Answer:
    return _shown(ask, ask.app.tenants.get(ask.path.tenant))


def create_tenant(ask: Ask) -> Answer:
    name = ask.body.name
    if _find(ask, name):
        raise Refusal(409, "already_exists", f"there is a tenant '{name}'; PUT or PATCH changes it", field="name")
    return _put(ask, name, _fields(ask.body), 0, 201)


def put_tenant(ask: Ask) -> Answer:
    name = ask.path.tenant
    status = 200 if _find(ask, name) else 201
    return _put(ask, name, _fields(ask.body), ask.expect_version, status)


def patch_tenant(ask: Ask) -> Answer:
    view = ask.app.tenants.get(ask.path.tenant)
    said = {name: value for name, value in _fields(ask.body).items() if value is not UNSET}
    kept = {name: getattr(view, name) for name in FIELDS}
    version = view.version if ask.expect_version is None else ask.expect_version
    return _put(ask, view.name, {**kept, **said}, version, 200)


def delete_tenant(ask: Ask) -> None:
    if not ask.app.tenants.remove(ask.path.tenant, by=ask.by, expect_version=ask.expect_version):
        raise TenantNotFound(f"no tenant has the name {ask.path.tenant!r}")


def pause_tenant(ask: Ask) -> Answer:
    body: PauseBody = ask.body
    view = ask.app.tenants.pause(
        ask.path.tenant, until=body.until, reason=body.reason, by=ask.by, expect_version=ask.expect_version
    )
    return _shown(ask, view)


def resume_tenant(ask: Ask) -> Answer:
    return _shown(ask, ask.app.tenants.resume(ask.path.tenant, by=ask.by, expect_version=ask.expect_version))


def list_tenant_changes(ask: Ask) -> Page[ChangeFacts]:
    page = ask.app.tenants.changes(ask.path.tenant, limit=ask.query.limit, cursor=ask.query.cursor)
    return Page([change_facts(change) for change in page.items], page.cursor)


def _put(ask: Ask, name: str, fields: dict[str, Any], version: int | None, status: int) -> Answer:
    with at_fault("tz", BadTrigger):
        return _shown(ask, ask.app.tenants.put(name, **fields, by=ask.by, expect_version=version), status)


def _fields(body: Body) -> dict[str, Any]:
    return {name: getattr(body, name) for name in FIELDS}


def _find(ask: Ask, name: str) -> bool:
    return bool(ask.app.open().get_entries("tenant", [name]))


def _shown(ask: Ask, view: TenantView, status: int = 200) -> Answer:
    return Answer(tenant_facts(view, ask.app.open().now()), status, {"ETag": f'"{view.version}"'})


_ALL, _ONE = "/api/v1/tenants", "/api/v1/tenants/{tenant}"

ROUTES = (
    Route(method="GET", path=_ALL, role="read", handle=list_tenants, query=NamesQuery, answer=Page[TenantFacts],
          says="Tenants by name."),
    Route(method="POST", path=_ALL, role="operate", handle=create_tenant, body=NewTenantBody, answer=TenantFacts,
          status=201, says="Make a tenant.", also={409: "There is one with that name."}),
    Route(method="GET", path=_ONE, role="read", handle=get_tenant, params=TenantPath, answer=TenantFacts,
          says="A tenant; its version is its ETag."),
    Route(method="PUT", path=_ONE, role="operate", handle=put_tenant, params=TenantPath, body=TenantBody,
          answer=TenantFacts, is_versioned=True, also={201: "Created"},
          says="Create a tenant, or replace it; its schedules follow at once."),
    Route(method="PATCH", path=_ONE, role="operate", handle=patch_tenant, params=TenantPath, body=TenantPatch,
          answer=TenantFacts, is_versioned=True, says="Change the given fields of a tenant; the others stay."),
    Route(method="DELETE", path=_ONE, role="operate", handle=delete_tenant, params=TenantPath, status=204,
          is_versioned=True, says="Remove a tenant that no schedule follows."),
    Route(method="POST", path=f"{_ONE}/pause", role="operate", handle=pause_tenant, params=TenantPath, body=PauseBody,
          answer=TenantFacts, is_versioned=True, says="Stop all its schedules."),
    Route(method="POST", path=f"{_ONE}/resume", role="operate", handle=resume_tenant, params=TenantPath,
          answer=TenantFacts, is_versioned=True, says="Let its schedules fire again."),
    Route(method="GET", path=f"{_ONE}/changes", role="read", handle=list_tenant_changes, params=TenantPath,
          query=NotesQuery, answer=Page[ChangeFacts], says="Who changed it, when, and what."),
)  # fmt: skip
