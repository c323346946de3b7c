"""Shows the tenants: their zones and defaults, their schedules, a pause for all of them, and the effect of a change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast, get_args

import msgspec
from msgspec import Struct

from rota.errors import RotaError, VersionConflict
from rota.inspector.facts.tenant import TenantFacts, tenant_facts
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.tenant_preview import MOST, preview_tenant
from rota.inspector.wall_times import time_from
from rota.model.micros import datetime_of
from rota.model.names import check_name, check_priority
from rota.model.tenant import OnZoneChange, Tenant
from rota.store.contract import ScheduleFilter
from rota.triggers.zone import find_zone
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.rule_words import rule_sentence, sentence_of
from rota.web.pages.said_words import say_error
from rota.web.pages.views.schedule import change_values
from rota.web.types import Name

if TYPE_CHECKING:
    from rota.inspector.tenant_view import TenantView
    from rota.web.pages.words import Words

SHOWN = 50
CHANGES = 20
LONGEST_TEXT = 1_000
FIELDS = ("tz", "queue", "priority", "on_zone_change", "description")


class TenantPath(Struct, frozen=True):
    """Which tenant."""

    tenant: Name


def show_tenants(visit: Visit) -> View:
    return _list_view(visit, {}, {})


def _list_view(visit: Visit, sent: dict[str, str], faults: dict[str, str]) -> View:
    cursor = visit.query.get("cursor", "")[:200] or None
    page = visit.app.tenants.list(limit=SHOWN, cursor=cursor)
    store = visit.app.open()
    numbers = Counter(brief.tenant for brief in visit.readings.index.briefs(store) if brief.tenant)
    facts = [tenant_facts(view, store.now()) for view in page.items]
    values = {
        "rows": [{"tenant": one, "schedules": numbers[one.name]} for one in facts],
        "older": visit.url("/tenants", cursor=page.cursor) if page.cursor else "",
        "newest": visit.url("/tenants") if cursor else "",
        "form": {name: sent.get(name, "") for name in ("name", *FIELDS)},
        "faults": faults,
        "zones_rule": get_args(OnZoneChange),
    }
    return View(template="tenants.html", values=values, status=422 if faults else 200)


def add_tenant(visit: Visit) -> View | GoTo:
    sent = dict(visit.form)
    faults: dict[str, str] = {}
    fields = read_fields(visit.words, sent, faults)
    name = sent.get("name", "").strip()
    try:
        check_name("tenant", name)
    except RotaError as err:
        faults["name"] = say_error(visit.words, err)
    if faults:
        return _list_view(visit, sent, faults)
    try:
        visit.app.tenants.put(name, **fields, by=visit.by, expect_version=0)
    except VersionConflict as err:
        return _list_view(visit, sent, {"name": say_error(visit.words, err)})
    return GoTo(path=f"/tenants/{name}", flash=Flash(key="tenants.created", values={"name": name}))


def read_fields(words: Words, sent: dict[str, str], faults: dict[str, str]) -> dict[str, Any]:
    """The fields of a form; what is wrong is said at its field."""
    fields: dict[str, Any] = {"description": sent.get("description", "").strip()[:LONGEST_TEXT]}
    rule = sent.get("on_zone_change", "recompute")
    fields["on_zone_change"] = cast("OnZoneChange", rule if rule in get_args(OnZoneChange) else "recompute")
    for name in ("tz", "queue", "priority"):
        text = sent.get(name, "").strip()
        try:
            fields[name] = _field(name, text)
        except (RotaError, ValueError) as err:
            faults[name] = say_error(words, err)
    return fields


def _field(name: str, text: str) -> str | int | None:
    if name == "tz":
        find_zone(text)
        return text
    if not text:
        return None
    if name == "queue":
        return check_name("queue", text)
    is_number = text.isascii() and text.lstrip("+-").isdecimal() and len(text) < 10
    return check_priority(int(text) if is_number else text)


def show_tenant(visit: Visit) -> View:
    view = visit.app.tenants.get(visit.path["tenant"])
    return _tenant_view(visit, view, _texts(view), {}, None, "")


def _texts(view: TenantView) -> dict[str, str]:
    return {name: "" if getattr(view, name) is None else str(getattr(view, name)) for name in FIELDS}


def change_tenant(visit: Visit) -> View | GoTo:
    """Show what a change would do, or make it."""
    view = visit.app.tenants.get(visit.path["tenant"])
    sent = {name: visit.form.get(name) for name in FIELDS}
    faults: dict[str, str] = {}
    fields = read_fields(visit.words, sent, faults)
    if faults:
        return _tenant_view(visit, view, sent, faults, None, "")
    if visit.form.get("go") != "save":
        return _tenant_view(visit, view, sent, {}, fields, "")
    version = visit.form.get("version")
    try:
        expected = int(version) if version.isascii() and version.isdigit() and len(version) < 19 else view.version
        visit.app.tenants.put(view.name, **fields, by=visit.by, expect_version=expected)
    except VersionConflict as err:
        return _tenant_view(visit, view, sent, {}, fields, say_error(visit.words, err))
    return GoTo(path=f"/tenants/{view.name}", flash=Flash(key="tenants.changed", values={"name": view.name}))


def _tenant_view(
    visit: Visit,
    view: TenantView,
    sent: dict[str, str],
    faults: dict[str, str],
    said: dict[str, Any] | None,
    conflict: str,
) -> View:
    store = visit.app.open()
    now = store.now()
    facts = tenant_facts(view, now)
    found = store.list_schedules(ScheduleFilter(tenant=view.name), limit=SHOWN)
    moved = []
    if said is not None:
        moved = preview_tenant(store, view.name, msgspec.structs.replace(Tenant(**said), pause=view.record.pause))
    values = {
        "tenant": facts,
        "form": sent,
        "faults": faults,
        "conflict": conflict,
        "is_preview": said is not None,
        "moved": [(one, rule_sentence(visit.words, one.rule, one.sentence)) for one in moved],
        "moved_most": MOST,
        "differences": _differences(facts, said) if said is not None else [],
        "schedules": [_schedule(visit.words, KnownSchedule(one, now)) for one in found.items],
        "more": found.cursor is not None,
        "changes": [
            change_values(visit.words, one) for one in visit.app.tenants.changes(view.name, limit=CHANGES).items
        ],
        "zones_rule": get_args(OnZoneChange),
    }
    return View(template="tenant.html", values=values, status=422 if faults else 409 if conflict else 200)


def _differences(facts: TenantFacts, said: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(name, getattr(facts, name), said[name]) for name in FIELDS if getattr(facts, name) != said[name]]


def _schedule(words: Words, known: KnownSchedule) -> dict[str, Any]:
    return {
        "id": known.id, "state": known.state, "sentence": sentence_of(words, known), "next": known.next_run,
        "follows": sorted(known.record.spec.follows),
    }  # fmt: skip


def pause_tenant(visit: Visit) -> GoTo:
    name, until = visit.path["tenant"], visit.form.get("until").strip()
    view = visit.app.tenants.get(name)
    end = time_from(until, find_zone(view.tz), datetime_of(visit.app.open().now())) if until else None
    visit.app.tenants.pause(name, until=end, reason=visit.form.get("reason").strip()[:LONGEST_TEXT], by=visit.by)
    return GoTo(path=f"/tenants/{name}", flash=Flash(key="tenants.paused", values={"name": name}))


def resume_tenant(visit: Visit) -> GoTo:
    name = visit.path["tenant"]
    visit.app.tenants.resume(name, by=visit.by)
    return GoTo(path=f"/tenants/{name}", flash=Flash(key="tenants.resumed", values={"name": name}))


def remove_tenant(visit: Visit) -> GoTo:
    name = visit.path["tenant"]
    visit.app.tenants.remove(name, by=visit.by)
    return GoTo(path="/tenants", flash=Flash(key="tenants.removed", values={"name": name}))


_ONE = "/tenants/{tenant}"

PAGES = (
    Page(path="/tenants", role="read", handle=show_tenants),
    Page(method="POST", path="/tenants", role="operate", handle=add_tenant),
    Page(path=_ONE, role="read", params=TenantPath, handle=show_tenant),
    Page(method="POST", path=_ONE, role="operate", params=TenantPath, handle=change_tenant),
    Page(method="POST", path=f"{_ONE}/pause", role="operate", params=TenantPath, handle=pause_tenant),
    Page(method="POST", path=f"{_ONE}/resume", role="operate", params=TenantPath, handle=resume_tenant),
    Page(method="POST", path=f"{_ONE}/remove", role="operate", params=TenantPath, handle=remove_tenant),
)
