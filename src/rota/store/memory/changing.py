"""Changes jobs that still are what was decided on, and releases the jobs that waited for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.series import added, count_runs, minute_of
from rota.model.jobs.settle import Change, apply_to, cancel, release, still_awaited
from rota.model.schedules.occurrence import is_record_of, of_job
from rota.store.memory.connection import Database
from rota.store.shared.changing import check_changes, last_runs
from rota.store.shared.matching import may_change

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import LastRun
    from rota.store.contract import Refusal


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
                self._remove(job)
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
        self._apply([change for change, _ in checked.accepted], now)
        return checked.refused

    def _apply(self, changes: Sequence[Change], now: int) -> None:
        """Write changes that were found to hold, then what they set in motion."""
        runs = count_runs(changes)
        if runs:
            self._series[minute_of(now)] = added(self._series.get(minute_of(now), []), runs)
        for change in changes:
            self._counts.move(change.job.queue, change.job.state, change.state)
            self._put(apply_to(self._jobs[change.id], change))
        for change in changes:
            if change.state.is_final:
                self._release_waiting(change.id, now)
        for name, last in last_runs(changes, self._last_runs).items():
            self._schedules[name] = msgspec.structs.replace(self._schedules[name], last=last)
        for change in changes:
            if change.is_removal:
                self._remove(self._jobs[change.id])

    def _last_runs(self, names: list[str]) -> dict[str, LastRun]:
        return {name: self._schedules[name].last for name in names if name in self._schedules}

    def _release_waiting(self, job_id: str, now: int) -> None:
        """Release the jobs that waited for this one, or let them wait for what it waited for."""
        for job in [job for job in self._jobs.values() if job.state is State.HELD and job.waits_for == job_id]:
            awaited = still_awaited(job, self._jobs.get)
            if awaited is None:
                self._apply([release(job, now)], now)
            else:
                self._put(msgspec.structs.replace(job, waits_for=awaited))

    def _delete_unstarted(self, jobs: Sequence[Job], now: int) -> None:
        """Delete waiting jobs without a record, and release the jobs that waited for them."""
        for job in jobs:
            self._drop(job)
        for job in jobs:
            self._release_waiting(job.id, now)

    def _stop(self, job_id: str, reason: str, now: int) -> None:
        job = self._jobs[job_id]
        if job.state is State.RUNNING:
            self.request_cancels([job_id], reason)
        else:
            self._apply([cancel(job, now, reason)], now)

    def _remove(self, job: Job) -> None:
        """Delete a job; its occurrence stays, folded into a range."""
        schedule = self._schedules.get(job.schedule_id or "")
        if is_record_of(job, schedule.created_at if schedule else None):
            self._ledger.record(of_job(job))
        self._drop(job)
