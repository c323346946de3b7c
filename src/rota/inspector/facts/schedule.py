"""Defines schedules, their pauses and their occurrences, as JSON shows them."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import RotaError, UnknownZone
from rota.inspector.facts.cron import CaveatFacts
from rota.inspector.facts.trigger import TriggerFacts, trigger_facts
from rota.inspector.facts.values import duration, utc
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.schedule_state import ScheduleState
from rota.model.micros import SECOND, datetime_of, optional_datetime, outside_calendar
from rota.model.schedules.origin import describe_origin
from rota.model.schedules.schedule import Catchup, Overlap
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Pause, Schedule, ScheduleSpec
    from rota.model.secrets.redaction import Redaction


class PauseFacts(Struct, kw_only=True):
    """The author of a pause, the reason, and its end."""

    at: datetime
    by: str
    reason: str
    until: datetime | None
    tenant: str | None  # the tenant whose schedules are all paused


class ScheduleFacts(Struct, kw_only=True):
    """A schedule."""

    id: str
    version: int
    state: ScheduleState
    sentence: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    trigger: TriggerFacts | None  # None: it cannot be read
    tz: str
    tenant: str | None
    queue: str
    priority: int
    overlap: Overlap
    catchup: Catchup
    catchup_limit: int
    grace: str
    jitter: str | None
    lookahead: str | None
    key: str | None
    key_for: str | None
    start: str | None
    end: str | None
    max_runs: int | None
    run_on_start: bool
    enabled: bool
    description: str
    pause: PauseFacts | None  # its own or its tenant's, the one that lasts longer
    origin: str
    created_at: datetime
    updated_at: datetime
    next_run: datetime | None
    run_count: int
    last_run: datetime | None
    last_finished: datetime | None
    last_status: str | None
    last_success: datetime | None
    last_seconds: float | None
    last_error: str | None
    last_job_id: str | None


class SavedScheduleFacts(ScheduleFacts, kw_only=True):
    """A schedule that was created or changed, and warnings about its times."""

    warnings: list[CaveatFacts]


class OccurrenceFacts(Struct, kw_only=True):
    """The expected times in after < t <= through, and their one outcome."""

    after: datetime
    through: datetime
    count: int
    outcome: str
    reason: str
    job_id: str | None
    problem: str | None  # why it cannot be read, if it cannot


def schedule_facts(record: Schedule, redaction: Redaction, now: int) -> ScheduleFacts:
    known = KnownSchedule(record, now)
    return ScheduleFacts(
        **_of_spec(record.spec, redaction),
        **_of_last(record),
        id=record.id,
        version=record.version,
        state=known.state,
        sentence=known.sentence,
        trigger=_trigger(record),
        enabled=record.is_enabled,
        pause=pause_facts(record.silence),
        origin=describe_origin(record.origin),
        created_at=datetime_of(record.created_at),
        updated_at=datetime_of(record.updated_at),
        next_run=utc(known.next_run),
        run_count=record.runs,
        last_error=known.problem or record.last_error,
    )


def pause_facts(pause: Pause | None) -> PauseFacts | None:
    if pause is None:
        return None
    return PauseFacts(
        at=datetime_of(pause.at),
        by=pause.by,
        reason=pause.reason,
        until=optional_datetime(pause.until),
        tenant=pause.tenant or None,
    )


def occurrence_facts(entry: Occurrence) -> OccurrenceFacts:
    return OccurrenceFacts(
        after=datetime_of(entry.after_at),
        through=datetime_of(entry.through_at),
        count=entry.count,
        outcome=entry.outcome,
        reason=entry.reason,
        job_id=entry.job_id,
        problem=outside_calendar(after=entry.after_at, through=entry.through_at) or None,
    )


def stored_bound(spec: ScheduleSpec, name: str) -> date | None:
    """The schedule's start or end: a day or an instant. A day whose zone is unknown is the instant that is stored."""
    at: int | None = getattr(spec, name)
    if at is None or name not in spec.day_bounds:
        return optional_datetime(at)
    try:
        return find_zone(spec.tz).datetime_of(at // SECOND).date()
    except UnknownZone:
        return datetime_of(at)


def _of_spec(spec: ScheduleSpec, redaction: Redaction) -> dict[str, Any]:
    made = redaction.call(spec.payload.encode())
    same = ("task", "tz", "queue", "priority", "overlap", "catchup", "catchup_limit", "max_runs", "run_on_start")
    return {
        **{name: getattr(spec, name) for name in same},
        "description": spec.description,
        "args": made.args,
        "kwargs": made.kwargs,
        "tenant": spec.tenant or None,
        "key": spec.key or None,
        "key_for": duration(spec.key_for),
        "grace": duration(spec.grace) or "0s",
        "jitter": duration(spec.jitter),
        "lookahead": duration(spec.lookahead),
        "start": _bound_text(spec, "start"),
        "end": _bound_text(spec, "end"),
    }


def _of_last(record: Schedule) -> dict[str, Any]:
    last = record.last
    return {
        "last_run": optional_datetime(last.enqueued_at),
        "last_finished": optional_datetime(last.finished_at),
        "last_status": last.status,
        "last_success": optional_datetime(last.success_at),
        "last_seconds": None if last.duration is None else last.duration / SECOND,
        "last_job_id": last.job_id,
    }


def _bound_text(spec: ScheduleSpec, name: str) -> str | None:
    bound = stored_bound(spec, name)
    if isinstance(bound, datetime):
        return str(msgspec.to_builtins(bound))
    return None if bound is None else bound.isoformat()


def _trigger(record: Schedule) -> TriggerFacts | None:
    try:
        return trigger_facts(record.spec.trigger) if str(record.trigger) else None
    except (RotaError, ValueError, ArithmeticError, msgspec.ValidationError):  # another version wrote it, or a person
        return None
