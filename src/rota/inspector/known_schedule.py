"""Reads a schedule with its state, its sentence and its next run, or the reason why its rule cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import RotaError
from rota.inspector.schedule_state import ScheduleState, schedule_problem, state_given
from rota.inspector.schedule_view import ScheduleView

if TYPE_CHECKING:
    from datetime import datetime

    from rota.model.schedules.schedule import Schedule


class KnownSchedule:
    """A schedule as it was at an instant by the store's clock."""

    def __init__(self, record: Schedule, now: int) -> None:
        self.record = record
        self.id = record.id
        self.problem = schedule_problem(record)
        self.view = ScheduleView(record, now)
        self.sentence = record.spec.trigger
        self._coming: datetime | None = None
        try:
            self.sentence = self.explained()
            self._coming = self.view.next_run
        except (RotaError, ValueError, ArithmeticError) as err:  # written by another version, or by hand
            self.problem = self.problem or str(err)
        self.state: ScheduleState = state_given(self.problem, record, now)

    @property
    def next_run(self) -> datetime | None:
        """The time of its next run, in its zone."""
        return self._coming if self.state == "on" else None

    def explained(self) -> str:
        """Its rule in words; may raise if the rule cannot be read."""
        return self.view.trigger.explain()
