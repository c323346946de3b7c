"""What is known of a schedule, for whoever shows it: its state, its next run, and the values that all facts share.

How a rule, a pause or a span is written is up to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rota.errors import RotaError
from rota.inspector.facts import utc
from rota.inspector.schedule_view import ScheduleView
from rota.model.edit import describe_origin
from rota.model.micros import SECOND, datetime_of, optional_datetime, outside_calendar, span_text

if TYPE_CHECKING:
    from datetime import datetime

    from rota.model.redaction import Redaction
    from rota.model.schedule import Schedule

ScheduleState = Literal["on", "paused", "disabled", "retired", "finished", "broken"]


class KnownSchedule:
    """A schedule with its words; one whose rule cannot be read any more is known too, with the reason."""

    def __init__(self, record: Schedule) -> None:
        self.record = record
        self.id = record.id
        self.problem = record.problem or _outside_calendar(record) or None
        self.view: ScheduleView | None = None
        self._coming: datetime | None = None
        try:
            self.view = ScheduleView(record)
            self.sentence = self.explained(self.view)
            self._coming = self.view.next_run
        except (RotaError, ValueError, ArithmeticError) as err:  # written by another version, or by hand
            self.problem = self.problem or str(err)
            self.sentence = record.spec.trigger

    def explained(self, view: ScheduleView) -> str:
        """Its rule in words; may raise where it cannot be read."""
        return view.trigger.explain()

    @property
    def state(self) -> ScheduleState:
        if self.problem:
            return "broken"
        if self.record.origin.is_retired:
            return "retired"
        if not self.record.is_enabled:
            return "disabled"
        if self.record.silence is not None:
            return "paused"
        is_to_come = self.record.next_at is not None or self._coming is not None
        return "on" if is_to_come else "finished"

    @property
    def next_run(self) -> datetime | None:
        """In its zone."""
        return self._coming if self.state == "on" else None


def _outside_calendar(record: Schedule) -> str:
    """Instants outside the calendar, which no zone can show."""
    pauses = {pause.tenant or "pause": pause.until for pause in (record.pause, record.tenant_pause) if pause}
    return outside_calendar(
        created_at=record.created_at,
        updated_at=record.updated_at,
        next_at=record.next_at,
        start=record.spec.start,
        end=record.spec.end,
        last_run=record.last.enqueued_at,
        last_finished=record.last.finished_at,
        last_success=record.last.success_at,
        **{f"until ({name})": until for name, until in pauses.items()},
    )


def shared_facts(known: KnownSchedule, redaction: Redaction) -> dict[str, Any]:
    """What all facts say alike, by their names; times are UTC."""
    record, spec, last = known.record, known.record.spec, known.record.last
    made = redaction.call(spec.payload.encode())
    plain = ("task", "tz", "queue", "priority", "overlap", "catchup", "description")
    return {
        **{name: getattr(spec, name) for name in plain},
        "id": record.id,
        "version": record.version,
        "state": known.state,
        "sentence": known.sentence,
        "args": made.args,
        "kwargs": made.kwargs,
        "tenant": spec.tenant or None,
        "key": spec.key or None,
        "key_for": span_text(spec.key_for) if spec.key_for else None,
        "origin": describe_origin(record.origin),
        "created_at": datetime_of(record.created_at),
        "next_run": utc(known.next_run),
        "run_count": record.runs,
        "last_run": optional_datetime(last.enqueued_at),
        "last_status": last.status,
        "last_success": optional_datetime(last.success_at),
        "last_seconds": None if last.duration is None else last.duration / SECOND,
        "last_error": known.problem or record.last_error,
    }
