"""Changes jobs that still are what was decided on, and releases the jobs that waited for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.series import added, count_runs, minute_of
from rota.store.memory.connection import Database
from rota.store.shared.changing import check_changes, last_runs
from rota.store.shared.matching import may_change
from rota.store.shared.stepwise import apply_changes, remove_job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import LastRun
    from rota.store.contract import Refusal


class Changes(NamedTuple):
    """What changes read and write (see `ChangeSteps`)."""

    now: int
    find: Callable[[str], Job | None]
    put: Callable[[Job, Job | None], None]
    held_behind: Callable[[str], list[Job]]
    created_at: Callable[[str], int | None]
    record: Callable[[Occurrence], None]
    record_runs: Callable[[Sequence[Change]], None]


class Changer(Database):
    """Changes and deletes jobs."""

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        at = self._at(now)
        with self._lock:
            self._check_open()
            return self._decided(changes, at, may_change)

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        del now
        with self._lock:
            self._check_open()
            ended = [job for job in self.get_jobs(list(dict.fromkeys(ids))) if job.state.is_final]
            for job in ended:
                remove_job(job, self._changes(0))
            return [job.id for job in ended]

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        with self._lock:
            running = [job for job in self.get_jobs(ids) if job.state is State.RUNNING]
            for job in running:
                why = job.cancel_reason or reason or "cancelled"
                self._jobs[job.id] = msgspec.structs.replace(job, cancel_reason=why)
            return [job.id for job in running]

    # The lock is held.

    def _decided(
        self, changes: Sequence[Change], now: int, still_holds: Callable[[Change, Job], bool]
    ) -> list[Refusal]:
        with self._lock:
            refused = self._change_all(changes, now, still_holds)
        self._notifier.notify("jobs")
        return refused

    def _change_all(
        self, changes: Sequence[Change], now: int, still_holds: Callable[[Change, Job], bool]
    ) -> list[Refusal]:
        """Apply the changes whose jobs still are what was decided on; return the ids of the others."""
        checked = check_changes(changes, lambda change: self._jobs.get(change.id), still_holds)
        apply_changes([change for change, _ in checked.accepted], self._changes(now))
        return checked.refused

    def _changes(self, now: int) -> Changes:
        """What changes at this instant read and write."""

        def put(before: Job, after: Job | None) -> None:
            self._counts.change(before, after)
            if after is None:
                self._drop(before)
            else:
                self._put(after)

        return Changes(
            now=now,
            find=self._jobs.get,
            put=put,
            held_behind=self._held_behind,
            created_at=self._created_at,
            record=self._ledger.record,
            record_runs=lambda changes: self._record_runs(changes, now),
        )

    def _held_behind(self, job_id: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.state is State.HELD and job.waits_for == job_id]

    def _created_at(self, schedule_id: str) -> int | None:
        schedule = self._schedules.get(schedule_id)
        return schedule.created_at if schedule else None

    def _record_runs(self, changes: Sequence[Change], now: int) -> None:
        runs = count_runs(changes)
        if runs:
            self._series[minute_of(now)] = added(self._series.get(minute_of(now), []), runs)
        for name, last in last_runs(changes, self._last_runs).items():
            self._schedules[name] = msgspec.structs.replace(self._schedules[name], last=last)

    def _last_runs(self, names: list[str]) -> dict[str, LastRun]:
        return {name: self._schedules[name].last for name in names if name in self._schedules}
