"""Shows collections that are kept in sync, the result of their last sync, and a button that starts one now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.schedule_state import schedule_state
from rota.web.api.collections import Part
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.rule_words import sentence_of

if TYPE_CHECKING:
    from rota.inspector.collection_view import CollectionView, SourceView
    from rota.web.pages.words import Words

MOST_SHOWN = 500


class CollectionPath(Struct, frozen=True):
    """Which collection."""

    source: Part
    collection: Part


def show_sources(visit: Visit) -> View:
    search = visit.query.get("q", "").strip()[:255]
    now = visit.app.open().now()
    return View(template="sources.html", values=sources_values(visit.words, visit.app.sources.list(), search, now))


def sources_values(words: Words, sources: list[SourceView], search: str, now: int) -> dict[str, Any]:
    wanted = search.lower()
    all_of = [(source.name, [_row(words, one, now) for one in source.collections]) for source in sources]
    found = [(name, [one for one in rows if wanted in f"{name}/{one['name']}".lower()]) for name, rows in all_of]
    total, left = sum(len(rows) for _, rows in found), MOST_SHOWN
    shown = []
    for name, rows in found:
        ordered = sorted(rows, key=lambda one: (not one["failing"], one["name"]))[:left]
        left -= len(ordered)
        if ordered:
            shown.append({"name": name, "rows": ordered, "failing": sum(one["failing"] for one in rows)})
    return {
        "search": search,
        "sources": shown,
        "total": total,
        "shown": MOST_SHOWN - left,
        "all": sum(len(rows) for _, rows in all_of),
        "failing": sum(one["failing"] for _, rows in all_of for one in rows),
    }


def _row(words: Words, one: CollectionView, now: int) -> dict[str, Any]:
    record = one.schedule.record
    status = record.last.status
    state = schedule_state(record, now)
    return {
        "name": one.name,
        "source": one.source,
        "task": one.task,
        "sentence": sentence_of(words, KnownSchedule(record, now)),
        "is_on_demand": one.is_on_demand,
        "schedule": record.id,
        "state": state,
        "status": status or "",
        "failing": record.last.is_failing,
        "error": (record.last_error or "").partition("\n")[0] if record.last.is_failing else "",
        "job": record.last.job_id,
        "finished": one.schedule.last_finished,
        "success": one.schedule.last_success,
        "seconds": one.schedule.last_duration,
        "next": None if one.is_on_demand or state != "on" else one.schedule.next_run,
    }


def start_sync(visit: Visit) -> GoTo:
    source, collection = visit.path["source"], visit.path["collection"]
    task = visit.app.sources.run(source, collection, by=visit.by)
    values: dict[str, str | int] = {"name": f"{source}/{collection}"}
    key = "sources.existed" if task.existed else "sources.started"
    return GoTo(path=f"/jobs/{task.id}", flash=Flash(key=key, values=values, tone="warn" if task.existed else "ok"))


PAGES = (
    Page(path="/sources", role="read", handle=show_sources),
    Page(
        method="POST", path="/sources/{source}/{collection}", role="operate", params=CollectionPath, handle=start_sync
    ),
)
