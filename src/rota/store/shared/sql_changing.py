"""Changes of jobs in the stores that keep tables: what follows from those that hold, and how jobs go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from rota.model.jobs.settle import release, still_awaited
from rota.model.schedules.occurrence import is_record_of, of_job
from rota.store.shared.changing import last_runs
from rota.store.shared.sql import Tables
from rota.store.shared.sql_codec import last_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import LastRun
    from rota.store.shared.sql_ledger import SqlLedger

Tx = TypeVar("Tx", bound=Tables)


class SqlChanger(ABC, Generic[Tx]):
    """One namespace's changes. A store says how it reads and writes its jobs."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    def follow(self, tx: Tx, changes: Sequence[Change], now: int) -> None:
        """What follows from changes that were written: waiting jobs are released, and schedules record their runs."""
        self._release(tx, [change.id for change in changes if change.state.is_final], now)
        last = last_runs(changes, lambda names: self._last_runs(tx, names))
        if last:
            self.record_last_runs(tx, last)

    def _last_runs(self, tx: Tx, names: list[str]) -> dict[str, LastRun]:
        rows = tx.rows("SELECT id, last FROM {ns}.schedule WHERE id = ANY(?)", (names,))
        return {name: last_from(stored) for name, stored in rows}

    def _release(self, tx: Tx, ended: list[str], now: int) -> None:
        """Release the jobs that waited for these, or let them wait for what a cancelled link of their chain awaited."""
        for job in self.held_behind(tx, ended) if ended else ():
            awaited = still_awaited(job, lambda job_id: next(iter(self.get(tx, [job_id])), None))
            if awaited is None:
                self.apply(tx, [(release(job, now), job)], now)
            else:
                self.wait_for(tx, job, awaited)

    def delete_unstarted(self, tx: Tx, jobs: Sequence[Job], now: int) -> None:
        """Delete jobs that leave no record, and release what waited for them."""
        if jobs:
            self.drop(tx, jobs)
            self._release(tx, [job.id for job in jobs], now)

    def remove(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Delete ended jobs; their occurrences stay in the ledger, unless they are of an earlier namesake."""
        if not jobs:
            return
        names = sorted({job.schedule_id for job in jobs if job.schedule_id and job.fire_at})
        query = "SELECT id, created_at FROM {ns}.schedule WHERE id = ANY(?)"
        since: dict[str, int] = dict(tx.rows(query, (names,)) if names else ())
        kept = [job for job in jobs if is_record_of(job, since.get(job.schedule_id or ""))]
        self._ledger.record(tx, [of_job(job) for job in kept])
        self.drop(tx, jobs)

    # What a store does in its own way.

    @abstractmethod
    def apply(self, tx: Tx, changes: Sequence[tuple[Change, Job]], now: int) -> None:
        """Write accepted changes of the jobs beside them, and what follows from them."""

    @abstractmethod
    def remove_ended(self, tx: Tx, ids: Sequence[str]) -> list[str]:
        """Delete those of the jobs that have ended."""

    @abstractmethod
    def get(self, tx: Tx, ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that exist."""

    @abstractmethod
    def held_behind(self, tx: Tx, ids: Sequence[str]) -> list[Job]:
        """The jobs that wait for one of these, locked until the transaction ends."""

    @abstractmethod
    def wait_for(self, tx: Tx, job: Job, awaited: str) -> None:
        """Let a held job wait for another one."""

    @abstractmethod
    def record_last_runs(self, tx: Tx, last: dict[str, LastRun]) -> None: ...

    @abstractmethod
    def drop(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """Delete jobs with all that belongs to them, and leave no record."""
