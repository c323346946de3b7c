"""Shows the schedules: those in trouble first, each with its rule, its next and last run and its last occurrences."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rota.errors import BadOption
from rota.inspector.coming import TOLERANCE, overdue_for, why_overdue
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.ledger import newest_of_many, open_times
from rota.inspector.schedule_index import (
    HEALTHS,
    Terms,
    counted,
    health_of,
    in_trouble,
    terms_from,
)
from rota.inspector.search import without_state
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.model.schedules.schedule import PAUSED
from rota.model.schedules.slots import DISABLED
from rota.web.pages.page import Page, View, Visit
from rota.web.pages.rule_words import sentence_of
from rota.web.pages.said_words import say_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rota.inspector.schedule_index import ScheduleBrief
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store
    from rota.web.pages.words import Words

SHOWN = 50
MOST_TROUBLE = 50  # schedules that stand before all others
STRIP = 30
TABS = ("failing", "late", "broken", "paused", "disabled", "retired", "finished")
TONES = {"succeeded": "ok", "failed": "bad", "running": "run", "queued": "next", "scheduled": "next", "held": "next"}


def show_schedules(visit: Visit) -> View:
    store, search = visit.app.open(), visit.query.get("q", "").strip()[:500]
    after = visit.query.get("after", "")[:130]
    briefs, problem, terms = visit.readings.index.briefs(store), "", Terms()
    try:
        terms = terms_from(search)
    except BadOption as err:
        problem = say_error(visit.words, err)
    found = [] if problem else terms.among(briefs)
    page, is_more = page_of(found, after)
    now = store.now()
    shown = _read(store, page)
    strips = newest_of_many(store, shown, now + 1, STRIP)
    rows = [row(visit.words, schedule, lines, now) for schedule, lines in zip(shown, strips, strict=True)]
    values = {
        "search": search,
        "problem": problem,
        "tabs": tabs_of(visit, terms, search, briefs),
        "rows": [explained(one, store) for one in rows] if any(one["overdue"] for one in rows) else rows,
        "total": len(found),
        "has_schedules": bool(briefs),
        "first": visit.url("/schedules", q=search) if after else "",
        "more": visit.url("/schedules", q=search, after=page[-1].id) if is_more else "",
        "now": datetime_of(now),
    }
    return View(template="schedules.html", values=values)


def page_of(found: list[ScheduleBrief], after: str) -> tuple[list[ScheduleBrief], bool]:
    """The schedules of one page, and whether more follow: the first page begins with those in trouble.

    A later page has every schedule after an id, also those in trouble: one that got into trouble since the first page
    was read is on no other page.
    """
    if after:
        start = bisect_right(found, after, key=attrgetter("id"))
        return found[start : start + SHOWN], start + SHOWN < len(found)
    trouble = in_trouble(found)[:MOST_TROUBLE]
    first = {brief.id for brief in trouble}
    rest = [brief for brief in found if brief.id not in first] if first else found
    page = rest[: max(1, SHOWN - len(trouble))]
    return trouble + page, len(page) < len(rest)


def _read(store: Store, page: Sequence[ScheduleBrief]) -> list[Schedule]:
    return store.get_schedules([brief.id for brief in page]) if page else []


def tabs_of(visit: Visit, terms: Terms, search: str, briefs: list[ScheduleBrief]) -> list[dict[str, Any]]:
    rest = Terms(words=terms.words, fields={name: value for name, value in terms.fields.items() if name != "state"})
    fitting = rest.among(briefs)
    counts, chosen = counted(fitting), terms.fields.get("state", "")
    others = without_state(search)
    tabs = [{"health": "", "url": visit.url("/schedules", q=others), "count": len(fitting), "is_current": not chosen}]
    for health in HEALTHS:
        if health in TABS and (counts[health] or health == chosen):
            url = visit.url("/schedules", q=f"state:{health} {others}".strip())
            tabs.append({"health": health, "url": url, "count": counts[health], "is_current": health == chosen})
    return tabs


def row(words: Words, schedule: Schedule, lines: Sequence[Occurrence], now: int) -> dict[str, Any]:
    """One schedule as the list shows it, with its last entries of the ledger, newest first."""
    known, last = KnownSchedule(schedule, now), schedule.last
    overdue = overdue_for(schedule, now)
    return {
        "id": schedule.id,
        "version": schedule.version,
        "health": health_of(schedule, now),
        "state": known.state,
        "sentence": sentence_of(words, known),
        "tz": schedule.spec.tz,
        "tenant": schedule.spec.tenant,
        "problem": (known.problem or "").partition("\n")[0],
        "error": (schedule.last_error or "").partition("\n")[0] if last.is_failing else "",
        "since": optional_datetime(last.success_at),
        "pause": schedule.silence,
        "until": optional_datetime(schedule.silence.until) if schedule.silence else None,
        "next": next_of(known, overdue, now),
        "overdue": overdue / SECOND,
        "cause": "behind",
        "cause_since": None,
        "last_state": last.status or ("running" if last.enqueued_at else ""),
        "last_at": optional_datetime(last.finished_at or last.enqueued_at),
        "last_job": last.job_id,
        "takes": None if last.duration is None else last.duration / SECOND,
        "cells": silent_cells(schedule, now, cells_of(lines)),
    }


def next_of(known: KnownSchedule, overdue: int, now: int) -> datetime | None:
    """The next run that is to come: one that has passed is overdue, and no upcoming run."""
    if known.next_run is None or overdue or known.next_run < datetime_of(now - TOLERANCE):
        return None
    return known.next_run


def explained(one: dict[str, Any], store: Store) -> dict[str, Any]:
    """Why a run that is overdue was not fired: no scheduler is alive, and since when, or one is behind."""
    if not one["overdue"]:
        return one
    cause, since = why_overdue(store)
    return {**one, "cause": cause, "cause_since": since}


def tone_of(line: Occurrence) -> str:
    if line.outcome == "skipped" and (line.reason.startswith(PAUSED) or line.reason == DISABLED):
        return "paused"
    return TONES.get(line.outcome, "skipped")


def cells_of(lines: Sequence[Occurrence], late: frozenset[int] = frozenset()) -> list[dict[str, str]]:
    """The last 30 times, oldest first, from entries that come newest first."""
    cells: list[dict[str, str]] = []
    for line in lines:
        tone = "late" if line.through_at in late and line.outcome == "succeeded" else tone_of(line)
        cells += [{"tone": tone}] * min(line.count, STRIP - len(cells))
    return cells[::-1]


def silent_cells(schedule: Schedule, now: int, cells: list[dict[str, str]]) -> list[dict[str, str]]:
    """With the times that pass while it is paused or disabled; the ledger has them once that is over."""
    if schedule.silence is None and schedule.is_enabled:
        return cells
    passed = min(STRIP, open_times(schedule, now))
    return [*cells, *[{"tone": "paused"}] * passed][-STRIP:]


PAGES = (Page(path="/schedules", role="read", handle=show_schedules),)
