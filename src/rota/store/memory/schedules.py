"""Edits schedules under their version, and reads them and their occurrences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.edit import audit_after, schedule_after
from rota.model.schedules.occurrence import is_record_of, of_job, of_skip
from rota.store.contract import Due
from rota.store.memory.adding import Adder
from rota.store.memory.changing import Changer
from rota.store.shared.matching import schedule_matches
from rota.store.shared.paging import occurrence_page, page_of
from rota.store.shared.stepwise import revoke_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import LedgerSpan, Page, ScheduleFilter


class Schedules(Adder, Changer):
    """Edits and reads schedules."""

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        with self._lock:
            self._check_open()
            at = self._at(now)
            refused = [edit.id for edit in edits if not self._edit(edit, at)]
        self._notifier.notify("schedules")
        self._notifier.notify("jobs")
        return refused

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        with self._lock:
            return [self._schedules[name] for name in ids if name in self._schedules]

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        with self._lock:
            ids = sorted(name for name in self._schedules if cursor is None or name > cursor)
            found = [self._schedules[name] for name in ids if schedule_matches(self._schedules[name], where)]
            return page_of(found, limit, lambda schedule: schedule.id)

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        with self._lock:
            at = self._at(now)
            waiting = sorted(
                (due_at, schedule.id)
                for schedule in self._schedules.values()
                if (due_at := schedule.due_at) is not None
            )
            due = [self._schedules[name] for due_at, name in waiting[:limit] if due_at <= at]
            rest = waiting[len(due) :]
            return Due(now=at, schedules=due, next_due_at=rest[0][0] if rest else None)

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], *, limit: int = 50) -> list[Page[Occurrence]]:
        with self._lock:
            return [self._occurrences(*span, limit) for span in spans]

    def _occurrences(self, schedule_id: str, start: int, end: int, limit: int) -> Page[Occurrence]:
        schedule = self._schedules.get(schedule_id)
        made_at = schedule.created_at if schedule else 0
        mine = (job for job in self._jobs.values() if job.schedule_id == schedule_id)
        kept = [of_job(job) for job in mine if is_record_of(job, made_at)]
        entries = [*kept, *self._ledger.of(schedule_id)]
        return occurrence_page((one for one in entries if one.through_at >= start and one.earliest_at < end), limit)

    # The lock is held.

    def _edit(self, edit: Edit, now: int) -> bool:
        current = self._schedules.get(edit.id)
        if not edit.holds_for(current.version if current else None, current.created_at if current else None):
            return False
        if edit.revoke is not None:
            revoke_jobs(list(self._jobs.values()), edit, edit.revoke, self._changes(now))
        made: list[str] = []
        if edit.is_removal:
            del self._schedules[edit.id]
            self._ledger.forget(edit.id)
        else:
            made = [new.id for new in edit.jobs if not self._is_made(new) and not self._add(new, now).existed]
            self._schedules[edit.id] = schedule_after(edit, current.last if current else None, made)
        audit = audit_after(edit, made)
        self._keep_audit([audit] if audit else [])
        self._ledger.erase(edit.id, edit.reopens)
        for skip in edit.skips:
            self._ledger.record(of_skip(edit.id, skip))
        return True

    def _is_made(self, new: NewJob) -> bool:
        """Whether its occurrence has, or had, a job."""
        return (new.schedule_id, new.fire_at) in self._made
