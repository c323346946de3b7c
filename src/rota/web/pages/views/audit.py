"""Shows audit records, newest first: who changed what, when, and the values before and after."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rota.app import internals
from rota.errors import RotaError
from rota.inspector.changes import list_changes
from rota.model.micros import check_instant
from rota.web.pages.page import Page, View, Visit
from rota.web.pages.run_form import Fault, local_instant
from rota.web.pages.views.schedule import change_values

if TYPE_CHECKING:
    from datetime import datetime

    from rota.inspector.changes import Change

SHOWN = 50
KINDS = ("schedule", "job", "queue", "tenant", "token", "alert")
_SUBJECT = re.compile(r"[a-z]{1,20}:[A-Za-z0-9._:-]{1,255}")
_CURSOR = re.compile(r"[A-Za-z0-9._:-]{1,300}")


def show_audit(visit: Visit) -> View:
    asked = {name: visit.query.get(name, "").strip()[:300] for name in ("subject", "since", "until", "cursor")}
    faults: dict[str, str] = {}
    subject = asked["subject"] or None
    if subject and not _SUBJECT.fullmatch(subject):
        faults["subject"] = str(visit.words.text("audit.bad_subject"))
        subject = None
    since, until = _instant(visit, "since", asked, faults), _instant(visit, "until", asked, faults)
    cursor = asked["cursor"] if _CURSOR.fullmatch(asked["cursor"]) else None
    store, redaction = visit.app.open(), internals(visit.app).redaction
    page = list_changes(store, redaction, subject, since=since, until=until, limit=SHOWN, cursor=cursor)
    kept = {name: asked[name] for name in ("subject", "since", "until")}
    values = {
        "asked": kept,
        "faults": faults,
        "rows": [row(visit, change) for change in page.items],
        "kinds": KINDS,
        "older": visit.url("/audit", **kept, cursor=page.cursor) if page.cursor else "",
        "newest": visit.url("/audit", **kept) if cursor else "",
        "is_filtered": any(kept.values()),
    }
    return View(template="audit.html", values=values)


def row(visit: Visit, change: Change) -> dict[str, Any]:
    places = {"schedule": "/schedules/", "job": "/jobs/", "tenant": "/tenants/"}
    link = visit.url(f"{places[change.kind]}{change.name}") if change.kind in places else ""
    if change.kind == "queue":
        link = visit.url("/jobs", q=f"queue:{change.name}")
    return {
        **change_values(visit.words, change),
        "id": change.id,
        "kind": change.kind,
        "name": change.name,
        "link": link,
        "only": visit.url("/audit", subject=f"{change.kind}:{change.name}"),
    }


def _instant(visit: Visit, name: str, asked: dict[str, str], faults: dict[str, str]) -> datetime | None:
    if not asked[name]:
        return None
    try:
        at = local_instant(asked[name], visit.words.zone)
        check_instant(name, at)
    except (Fault, RotaError, OverflowError, ValueError):
        faults[name] = str(visit.words.text("catalog.bad_datetime", text=asked[name]).unescape())
        return None
    return at


PAGES = (Page(path="/audit", role="read", handle=show_audit),)
