"""Shows a schedule to callers: its fields as plain values, its times as datetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.clock import utc_micros
from rota.errors import BadTrigger
from rota.inspector.occurrences import local_start, may_run
from rota.model.micros import SECOND, datetime_of, optional_datetime
from rota.model.schedules.origin import describe_origin
from rota.model.schedules.slots import coming_slot

if TYPE_CHECKING:
    from datetime import datetime

    from rota.model.schedules.schedule import Schedule
    from rota.triggers import Trigger


class ScheduleView:
    """A schedule as it was when it was read."""

    def __init__(self, record: Schedule, now: int | None = None) -> None:
        self.record = record
        self._now = utc_micros() if now is None else now  # by the store's clock, if that was read
        self.id = record.id
        self.task = record.spec.task
        self.tz = record.spec.tz
        self.description = record.spec.description
        self.is_enabled = record.is_enabled
        self.tenant = record.spec.tenant or None
        self.is_paused = record.silence is not None
        self.pause_reason = record.silence.words if record.silence else None
        self.created_at = datetime_of(record.created_at)
        self.last_run = optional_datetime(record.last.enqueued_at)  # when its last job was made
        self.last_finished = optional_datetime(record.last.finished_at)
        self.last_status = record.last.status
        self.last_success = optional_datetime(record.last.success_at)
        self.problem = record.problem  # why it cannot be evaluated, if it cannot
        self.last_error = record.last_error
        self.last_duration = None if record.last.duration is None else record.last.duration / SECOND
        self.run_count = record.runs  # by its trigger and by hand
        self.version = record.version
        self.origin = describe_origin(record.origin)

    @property
    def trigger(self) -> Trigger:
        """Its rule; BadTrigger if the stored rule cannot be evaluated."""
        return self.record.trigger

    @property
    def next_run(self) -> datetime | None:
        """When its next job may start, jitter included, in its zone; None while it is paused, disabled, broken or
        exhausted."""
        slot = self._next_slot if may_run(self.record) and not self.is_paused else None
        return None if slot is None else local_start(self.record, slot)

    @property
    def _next_slot(self) -> int | None:
        """The next time. A job that was created before it is due is yet to run."""
        return self.record.next_at if not self.record.has_jobs_ahead else coming_slot(self.record, self._now)

    def explain(self) -> str:
        """Its times in one sentence, or why they cannot be read."""
        try:
            return self.trigger.explain()
        except BadTrigger as err:
            return f"cannot be evaluated: {self.problem or err}"

    def __repr__(self) -> str:
        return f"<schedule {self.id}: {self.explain()}>"
