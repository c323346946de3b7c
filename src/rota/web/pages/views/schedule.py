"""Shows one schedule: why it did or did not run, its ledger, its next runs, its call, and its changes."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.app import internals
from rota.errors import BadOption, BadTrigger, RotaError, ScheduleNotFound
from rota.inspector.calls import call
from rota.inspector.coming import overdue_for, why_overdue
from rota.inspector.facts.change import lines_of
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.ledger import explained, newest_occurrences, overdue, strip_ends
from rota.inspector.schedule_index import health_of
from rota.inspector.wall_times import time_from
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.model.schedules.schedule import PAUSED, problem_of
from rota.model.schedules.wording import NOTHING
from rota.sentences import sentence
from rota.triggers.zone import find_zone
from rota.web.pages.page import Page, View, Visit
from rota.web.pages.rule_words import origin_words, rule_sentence, sentence_of
from rota.web.pages.said_words import say, say_error
from rota.web.pages.views.schedules import STRIP, cells_of, next_of, silent_cells
from rota.web.pages.why_words import fixed, said_of, warned
from rota.web.types import ScheduleId

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from rota.inspector.changes import Change
    from rota.inspector.facts.why import WhyFacts
    from rota.inspector.ledger import LedgerEntry
    from rota.model.schedules.schedule import Schedule, ScheduleSpec
    from rota.triggers.zone import Zone
    from rota.web.pages.words import Words

NEXT = 10
ENTRIES = 60  # of the ledger that a page shows
UNFOLDED = 4  # uneventful entries at the top of the ledger that stand by themselves
CHANGES = 8
QUIET = {"fired"}
TONES = {"failed": "bad", "late": "warn", "due": "warn", "missed": "warn", "broken": "bad", "fired": "ok"}
LONGEST_CALL = 400


class SchedulePath(Struct, frozen=True):
    """Which schedule."""

    schedule_id: ScheduleId


def read_schedule(visit: Visit) -> Schedule:
    found = visit.app.open().get_schedules([visit.path["schedule_id"]])
    if not found:
        raise ScheduleNotFound(
            sentence("missing.schedule", "no schedule has the id {schedule!r}", schedule=visit.path["schedule_id"])
        )
    return found[0]


def show_schedule(visit: Visit) -> View:
    store, schedule = visit.app.open(), read_schedule(visit)
    now, zone = store.now(), zone_of(schedule)
    known = KnownSchedule(schedule, now)
    before = _instant(visit.query.get("before", "")) or now + 1
    is_only = visit.query.get("show") == "exceptions"
    entries = explained(store, schedule, newest_occurrences(store, schedule, before, ENTRIES)[:ENTRIES])
    newest = (
        entries if before > now else explained(store, schedule, newest_occurrences(store, schedule, now + 1, STRIP))
    )
    ends = strip_ends(schedule, now, [entry.occurrence for entry in newest], STRIP)
    late = overdue(store, schedule) if before > now else None
    values = {
        **head_values(visit, known, now),
        **why_values(visit, schedule, zone, now),
        "rows": ledger_rows(visit.words, ([late] if late else []) + entries, zone, is_only=is_only),
        "call": call_of(visit, schedule),
        "spec": schedule.spec,
        "cells": silent_cells(schedule, now, strip_cells(newest)),
        "strip_from": datetime_of(ends[0]) if ends else None,
        "strip_to": datetime_of(ends[1]) if ends else None,
        "is_only": is_only,
        "links": ledger_links(visit, schedule, entries, before if before <= now else None, is_only=is_only),
        "runs": next_runs(visit, schedule),
        "warnings": [{"at": one.at, "said": warned(visit.words, one)} for one in warnings_of(schedule)],
        "policies": policies(visit, schedule),
        "changes": [
            change_values(visit.words, one) for one in visit.app.schedules.changes(schedule.id, limit=CHANGES).items
        ],
    }
    return View(template="schedule.html", values=values)


def zone_of(schedule: Schedule) -> Zone:
    try:
        return find_zone(schedule.spec.tz)
    except BadTrigger:
        return find_zone("UTC")


def head_values(visit: Visit, known: KnownSchedule, now: int) -> dict[str, Any]:
    schedule = known.record
    late = overdue_for(schedule, now)
    cause, since = why_overdue(visit.app.open()) if late else ("behind", None)
    return {
        "id": schedule.id,
        "version": schedule.version,
        "tz": schedule.spec.tz,
        "health": health_of(schedule, now),
        "state": known.state,
        "sentence": sentence_of(visit.words, known),
        "description": schedule.spec.description,
        "tenant": schedule.spec.tenant,
        "origin": schedule.origin,
        "origin_words": origin_words(visit.words, schedule.origin),
        "problem": known.problem,
        "pause": schedule.silence,
        "own_pause": schedule.pause,
        "until": optional_datetime(schedule.silence.until) if schedule.silence else None,
        "error": (schedule.last_error or "").partition("\n")[0] if schedule.last.is_failing else "",
        "last_job": schedule.last.job_id,
        "since": optional_datetime(schedule.last.success_at),
        "next": next_of(known, late, now),
        "overdue": late / SECOND,
        "cause": cause,
        "cause_since": since,
        "runs_made": schedule.runs,
    }


# Why it did or did not run at a time.


def why_values(visit: Visit, schedule: Schedule, zone: Zone, now: int) -> dict[str, Any]:
    """The answer about the time that is asked for; without one, about the last expected time."""
    asked, problem, facts = visit.query.get("at", "").strip()[:64], "", None
    try:
        at = time_from(asked, zone, datetime_of(now)) if asked else None
        facts = visit.app.schedules.why(schedule.id, at)
    except BadOption as err:
        problem = say_error(visit.words, err)
    except (RotaError, OverflowError, ValueError) as err:
        problem = say_error(visit.words, err)
    local = zone.datetime_of(int(facts.at.timestamp())) if facts else None
    return {
        "asked": asked,
        "why_problem": problem,
        "why": None if facts is None else verdict_values(visit.words, facts, zone, schedule),
        "why_at": f"{local:%Y-%m-%dT%H:%M:%S}".removesuffix(":00") if local else asked,
    }


def verdict_values(words: Words, facts: WhyFacts, zone: Zone, schedule: Schedule) -> dict[str, Any]:
    kind, values = facts.outcome.partition(":")[0], dict(facts.values)
    if "rule" in values:
        values["rule"] = rule_sentence(words, str(schedule.trigger), str(values["rule"]))
    return {
        "at": facts.at,
        "local": zone.datetime_of(int(facts.at.timestamp())),
        "code": facts.code,
        "said": said_of(words, facts.code, values, facts.sentence.partition(": ")[2]),
        "fix": fixed(words, facts.fix),
        "tone": TONES.get(kind, "warn" if kind in {"skipped", "coalesced"} else ""),
        "icon": icon_of(kind, facts.outcome),
        "job": facts.job_id,
        "before": _wall(facts.before, zone),
        "after": _wall(facts.after, zone),
    }


def _wall(at: datetime | None, zone: Zone) -> datetime | None:
    return None if at is None else zone.datetime_of(int(at.timestamp()))


def icon_of(kind: str, outcome: str) -> str:
    """The sign of an outcome: the name of a state that has one."""
    if PAUSED in outcome or "disabled" in outcome:
        return "paused"
    known = {"fired", "failed", "late", "coalesced", "skipped", "cancelled", "running", "queued", "broken"}
    return (
        kind
        if kind in known
        else "late"
        if kind in {"due", "missed"}
        else "queued"
        if kind == "waiting"
        else "expected"
    )


# The ledger.


def ledger_rows(words: Words, entries: Sequence[LedgerEntry], zone: Zone, *, is_only: bool) -> list[dict[str, Any]]:
    """Rows, newest first. Uneventful neighbours share one, but for the newest few."""
    rows: list[dict[str, Any]] = []
    folded: list[LedgerEntry] = []
    for entry in [*entries, None]:
        is_quiet = entry is not None and is_uneventful(entry)
        if is_quiet and entry is not None:
            folded.append(entry)
            continue
        if folded and not is_only:
            rows += _folded(words, folded, zone, is_first=not rows)
        folded = []
        if entry is not None:
            rows.append(entry_row(words, entry, zone))
    return rows


def is_uneventful(entry: LedgerEntry) -> bool:
    """Whether it ran in time and nothing is to be said of it."""
    return entry.verdict.code == "fired" or (
        entry.verdict.code == "job_forgotten" and entry.occurrence.outcome == "succeeded"
    )


def _folded(words: Words, entries: list[LedgerEntry], zone: Zone, *, is_first: bool) -> Iterator[dict[str, Any]]:
    alone = entries[:UNFOLDED] if is_first or len(entries) == 1 else []
    yield from (entry_row(words, entry, zone) for entry in alone)
    rest = entries[len(alone) :]
    if len(rest) == 1:
        yield entry_row(words, rest[0], zone)
    elif rest:
        took = [span for entry in rest if (span := _took(entry)) is not None]
        yield {
            **entry_row(words, rest[0], zone),
            "first": zone.datetime_of(_first_at(rest[-1]) // SECOND),
            "count": sum(entry.occurrence.count for entry in rest),
            "is_folded": True,
            "took": max(took, default=None),
            "least": min(took, default=None),
            "job": None,
        }


def entry_row(words: Words, entry: LedgerEntry, zone: Zone) -> dict[str, Any]:
    line, verdict = entry.occurrence, entry.verdict
    kind = verdict.outcome.partition(":")[0]
    return {
        "at": datetime_of(line.through_at),
        "local": zone.datetime_of(line.through_at // SECOND),
        "first": zone.datetime_of(_first_at(entry) // SECOND) if line.count > 1 else None,
        "count": line.count,
        "kind": kind,
        "state": icon_of(kind, verdict.outcome),
        "is_quiet": is_uneventful(entry),
        "is_folded": False,
        "code": verdict.code,
        "said": said_of(words, verdict.code, verdict.values, verdict.words),
        "fix": fixed(words, verdict.fix),
        "took": _took(entry),
        "least": None,
        "job": line.job_id,
    }


def _first_at(entry: LedgerEntry) -> int:
    return entry.occurrence.earliest_at if entry.first_at is None else entry.first_at


def _took(entry: LedgerEntry) -> float | None:
    job = entry.job
    if job is None or job.started_at is None or job.finished_at is None:
        return None
    return max(0, job.finished_at - job.started_at) / SECOND


def strip_cells(entries: Sequence[LedgerEntry]) -> list[dict[str, str]]:
    late = frozenset(entry.occurrence.through_at for entry in entries if entry.verdict.outcome == "late")
    return cells_of([entry.occurrence for entry in entries], late)


def ledger_links(
    visit: Visit, schedule: Schedule, entries: Sequence[LedgerEntry], before: int | None, *, is_only: bool
) -> dict[str, str]:
    path, show = f"/schedules/{schedule.id}", "exceptions" if is_only else ""
    oldest = entries[-1].occurrence.earliest_at if len(entries) >= ENTRIES else None
    return {
        "all": visit.url(path),
        "only": visit.url(path, show="exceptions"),
        "newest": visit.url(path, show=show) if before is not None else "",
        "older": visit.url(path, show=show, before=oldest) if oldest is not None else "",
    }


def _instant(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


# What it does, and when.


def next_runs(visit: Visit, schedule: Schedule) -> list[dict[str, Any]]:
    try:
        found = visit.app.schedules.next_runs(schedule.id, NEXT)
    except (RotaError, ValueError, ArithmeticError):
        return []
    return [{"at": run, "utc": run.astimezone(UTC)} for run in found]


def warnings_of(schedule: Schedule) -> list[Any]:
    """What would surprise about its rule in the year to come."""
    if problem_of(schedule) is not None:
        return []
    return schedule.trigger.warnings()[:4]


def policies(visit: Visit, schedule: Schedule) -> list[Any]:
    """What it does, in sentences."""
    spec, text, span = schedule.spec, visit.words.text, visit.words.span
    said = [
        text(f"policy.overlap_{spec.overlap}"),
        text(f"policy.catchup_{spec.catchup}", n=spec.catchup_limit, grace=span(spec.grace / SECOND)),
    ]
    said += list(_attempts(visit, schedule))
    if spec.jitter:
        said.append(text("policy.jitter", span=span(spec.jitter / SECOND)))
    if spec.lookahead:
        said.append(text("policy.lookahead", span=span(spec.lookahead / SECOND)))
    if spec.key:
        said.append(text("policy.key", name=spec.key))
    if spec.tenant:
        said.append(text("policy.tenant", tenant=spec.tenant))
    said += list(_bounds(visit, spec))
    if spec.max_runs:
        said.append(text("policy.max_runs", n=spec.max_runs, made=schedule.run_count))
    return said


def _attempts(visit: Visit, schedule: Schedule) -> Iterator[Any]:
    """How often its task is tried, as far as this process knows the task."""
    try:
        options = internals(visit.app).registry.get(schedule.spec.task).options
    except RotaError:
        return
    retries = options.retry.retries
    yield visit.words.text("policy.retries" if retries else "policy.no_retries", n=retries)
    if options.timeout:
        yield visit.words.text("policy.timeout", span=visit.words.span(options.timeout / SECOND))


def _bounds(visit: Visit, spec: ScheduleSpec) -> Iterator[Any]:
    for name, at in (("start", spec.start), ("end", spec.end)):
        if at is not None:
            yield visit.words.text(f"policy.{name}", at=visit.words.time(datetime_of(at), "minutes"))


def call_of(visit: Visit, schedule: Schedule) -> str:
    made = internals(visit.app).redaction.call(schedule.spec.payload.encode())
    text = call(schedule.spec.task, made.args, made.kwargs)
    return text if len(text) <= LONGEST_CALL else f"{text[:LONGEST_CALL]}…"


def change_values(words: Words, change: Change) -> dict[str, Any]:
    """A change with its lines in the viewer's language."""
    lines = [
        {
            "label": say(words, line.label),
            "before": "" if line.before is None or line.before == NOTHING else say(words, line.before),
            "after": say(words, line.after),
        }
        for line in lines_of(change)[:20]
    ]
    return {"verb": change.verb, "by": change.by, "at": change.at, "lines": lines}


PAGES = (Page(path="/schedules/{schedule_id}", role="read", handle=show_schedule, params=SchedulePath),)
