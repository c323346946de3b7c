"""Defines what a store does with schedules and their occurrences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.store.contract.values import LedgerSpan, check_cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.firing import Firing
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract.values import Due, Fired, Page, ScheduleFilter


class ScheduleVerbs(ABC):
    """Schedules: edited, found when due, fired; and what became of each expected time."""

    @abstractmethod
    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        """Apply edits, each whole or not at all. Returns the ids of schedules whose version had changed: they were
        refused.

        An edit that revokes cancels the schedule's waiting jobs; its lookahead jobs (the edit
        says which it deletes) are deleted instead, without a record: their occurrences are yet to come. A job of an
        edit that its slot or its key refuses is not made and is no run of the schedule: see `schedule_after`.
        """

    @abstractmethod
    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]: ...

    @abstractmethod
    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        """Schedules by id; the cursor is the last id."""

    @abstractmethod
    def due_schedules(self, limit: int, *, now: int | None = None) -> Due: ...

    @abstractmethod
    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        """Make the jobs and advance the schedules, each in one step guarded by its version."""

    @abstractmethod
    def list_many_occurrences(self, spans: Sequence[LedgerSpan], *, limit: int = 50) -> list[Page[Occurrence]]:
        """What became of the expected times of several schedules, each named once: a page of each, oldest first. Stores
        with servers answer in a few requests."""

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        """What became of the expected times in start <= t < end, oldest first; the cursor is the last time."""
        first = start if check_cursor(cursor) is None else int(cursor or 0) + 1
        return self.list_many_occurrences([LedgerSpan(schedule_id, first, end)], limit=limit)[0]
