"""What is answered about schedules and their occurrences."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.inspector.known_schedule import KnownSchedule, ScheduleState, shared_facts
from rota.model.micros import datetime_of, optional_datetime
from rota.model.schedule import Catchup, Overlap
from rota.web.schedule_body import bound_words, duration
from rota.web.trigger_body import TriggerBody, trigger_body

if TYPE_CHECKING:
    from rota.inspector.schedule_view import ScheduleView
    from rota.model.redaction import Redaction
    from rota.model.schedule import Pause, Schedule


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
    key: str | None
    key_for: str | None
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


class _Answered(KnownSchedule):
    """A schedule with its rule as JSON."""

    trigger: TriggerBody | None = None

    def explained(self, view: ScheduleView) -> str:
        sentence = super().explained(view)
        self.trigger = trigger_body(view.record.spec.trigger)
        return sentence


def schedule_facts(record: Schedule, redaction: Redaction) -> ScheduleFacts:
    known, spec = _Answered(record), record.spec
    return ScheduleFacts(
        **shared_facts(known, redaction),
        trigger=known.trigger,
        catchup_limit=spec.catchup_limit,
        grace=duration(spec.grace) or "0s",
        jitter=duration(spec.jitter),
        lookahead=duration(spec.lookahead),
        start=bound_words(spec, "start"),
        end=bound_words(spec, "end"),
        max_runs=spec.max_runs,
        run_on_start=spec.run_on_start,
        enabled=record.is_enabled,
        pause=pause_facts(record.silence),
        updated_at=datetime_of(record.updated_at),
        last_finished=optional_datetime(record.last.finished_at),
        last_job_id=record.last.job_id,
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
