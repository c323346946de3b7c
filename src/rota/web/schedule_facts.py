"""What is answered about schedules and their occurrences."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from rota.errors import RotaError
from rota.facts import call_of, utc
from rota.model.edit import describe_origin
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.model.schedule import Catchup, Overlap
from rota.schedule_view import ScheduleView
from rota.web.schedule_body import bound_words, duration
from rota.web.trigger_body import TriggerBody, trigger_body

if TYPE_CHECKING:
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Pause, Schedule

ScheduleState = Literal["on", "paused", "disabled", "retired", "finished", "broken"]


class PauseFacts(Struct, kw_only=True):
    """Who stopped it, why, and until when."""

    at: datetime
    by: str
    reason: str
    until: datetime | None
    tenant: str | None  # whose schedules are all paused


class ScheduleFacts(Struct, kw_only=True):
    """A schedule."""

    id: str
    version: int
    state: ScheduleState
    sentence: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    trigger: TriggerBody | None  # None: it cannot be read any more
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
    start: str | None
    end: str | None
    max_runs: int | None
    run_on_start: bool
    enabled: bool
    description: str
    pause: PauseFacts | None
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


class OccurrenceFacts(Struct, kw_only=True):
    """The expected times in after < t <= through, and their one outcome."""

    after: datetime
    through: datetime
    count: int
    outcome: str
    reason: str
    job_id: str | None


def schedule_facts(record: Schedule) -> ScheduleFacts:
    spec, last, made = record.spec, record.last, call_of(record.spec.payload.encode())
    trigger, sentence, problem, next_run = _times(record)
    return ScheduleFacts(
        id=record.id,
        version=record.version,
        state=state_of(record, problem),
        sentence=sentence,
        task=spec.task,
        args=made.args,
        kwargs=made.kwargs,
        trigger=trigger,
        tz=spec.tz,
        tenant=spec.tenant or None,
        queue=spec.queue,
        priority=spec.priority,
        overlap=spec.overlap,
        catchup=spec.catchup,
        catchup_limit=spec.catchup_limit,
        grace=duration(spec.grace) or "0s",
        jitter=duration(spec.jitter),
        lookahead=duration(spec.lookahead),
        start=bound_words(spec, "start"),
        end=bound_words(spec, "end"),
        max_runs=spec.max_runs,
        run_on_start=spec.run_on_start,
        enabled=record.is_enabled,
        description=spec.description,
        pause=pause_facts(record.silence),
        origin=describe_origin(record.origin),
        created_at=datetime_of(record.created_at),
        updated_at=datetime_of(record.updated_at),
        next_run=next_run,
        run_count=record.run_count,
        last_run=optional_datetime(last.enqueued_at),
        last_finished=optional_datetime(last.finished_at),
        last_status=last.status,
        last_success=optional_datetime(last.success_at),
        last_seconds=None if last.duration is None else last.duration / SECOND,
        last_error=problem or last.error,
        last_job_id=last.job_id,
    )


def state_of(record: Schedule, problem: str | None) -> ScheduleState:
    if problem:
        return "broken"
    if record.origin.is_retired:
        return "retired"
    if not record.is_enabled:
        return "disabled"
    if record.silence is not None:
        return "paused"
    return "on" if record.next_at is not None else "finished"


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


def occurrence_facts(line: Occurrence) -> OccurrenceFacts:
    return OccurrenceFacts(
        after=datetime_of(line.after_at),
        through=datetime_of(line.through_at),
        count=line.count,
        outcome=line.outcome,
        reason=line.reason,
        job_id=line.job_id,
    )


def _times(record: Schedule) -> tuple[TriggerBody | None, str, str | None, datetime | None]:
    """Its rule, in words, why it cannot be evaluated, and its next run."""
    try:
        view = ScheduleView(record)
        return trigger_body(record.spec.trigger), view.trigger.explain(), record.problem, utc(view.next_run)
    except (RotaError, ValueError) as err:  # written by another version, or by hand
        return None, record.spec.trigger, record.problem or str(err), None
