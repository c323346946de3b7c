"""Changes jobs where they still are what was decided on, with all that a change sets in motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import is_noted, is_record_of, noted, of_job
from rota.model.settle import Change, cancel, release, still_awaited
from rota.model.state import State
from rota.store.shared.changing import check_changes
from rota.store.shared.matching import is_running, is_same
from rota.store.sqlite.block_index import BLOCK
from rota.store.sqlite.codec import JOB_COLUMNS, SET_CHANGE, jobs_of, last_of, packed_last, row_of_change
from rota.store.sqlite.transaction import rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.job import Job
    from rota.store.contract import Refusal
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.listing import Listing
    from rota.store.sqlite.transaction import Transaction, Transactions


class Changer:
    """Changes and deletes one namespace's jobs."""

    def __init__(self, namespace: str, transactions: Transactions, listing: Listing, ledger: Ledger) -> None:
        self._transactions = transactions
        self._listing = listing
        self._ledger = ledger
        self._name = f"{namespace}_job"
        self._schedules = f"{namespace}_schedule"
        self._logs = f"{namespace}_log"
        self._update = f"UPDATE {self._name} SET {SET_CHANGE} WHERE seq = ?"

    def change_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        with self._transactions.work("change", now) as tx:
            tx.notify("jobs")
            return self.settle(tx, changes, lambda change, job: is_same(change, job) and not is_running(job))

    def delete_jobs(self, ids: Sequence[str]) -> list[str]:
        with self._transactions.work("delete") as tx:
            return self.remove(tx, ids)

    def settle(
        self, tx: Transaction, changes: Sequence[Change], still_holds: Callable[[Change, Job], bool]
    ) -> list[Refusal]:
        """Apply changes where the jobs still are what was decided on; name the others."""
        current = {job.seq: job for job in self._listing.at(tx.connection, [change.job.seq for change in changes])}

        def find(change: Change) -> Job | None:
            job = current.get(change.job.seq)
            return job if job is not None and job.id == change.id else None

        checked = check_changes(changes, find, still_holds)
        self.apply(tx, [change for change, _ in checked.accepted])
        return checked.refused

    def apply(self, tx: Transaction, changes: Sequence[Change]) -> None:
        """Write changes that were found to hold, and what follows from them."""
        if changes:
            tx.connection.executemany(self._update, [(*row_of_change(change), change.job.seq) for change in changes])
            self.follow(tx, changes)

    def follow(self, tx: Transaction, changes: Sequence[Change]) -> None:
        """What changes set in motion, once they are written."""
        tx.counts.move_all((change.job.queue, change.job.state, change.state) for change in changes)
        ended = [change for change in changes if change.state.is_final]
        if ended:
            succeeded = {change.job.seq // BLOCK for change in ended if change.state is State.SUCCEEDED}
            tx.blocks.add_successes(tx.connection, succeeded)
            self._release(tx, [change.id for change in ended])
        self._record_last_runs(tx, changes)
        if ended:
            self.remove(tx, [change.id for change in ended if change.is_removal])

    def _release(self, tx: Transaction, ended: list[str]) -> None:
        """Jobs that waited for these become ready, or wait for what a cancelled link of their chain waited for."""
        if tx.connection.execute(f"SELECT 1 FROM {self._name} WHERE state = 'held' LIMIT 1").fetchone() is None:
            return
        query = f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE waits_for IN"
        for job in jobs_of(rows_in(tx.connection, query, ended, "AND state = 'held'")):
            awaited = still_awaited(job, lambda job_id: next(iter(self._listing.get(tx.connection, [job_id])), None))
            if awaited is None:
                self.apply(tx, [release(job, tx.now)])
            else:
                tx.connection.execute(f"UPDATE {self._name} SET waits_for = ? WHERE seq = ?", (awaited, job.seq))

    def _record_last_runs(self, tx: Transaction, changes: Sequence[Change]) -> None:
        """Record with the schedules how their jobs ended, or that an attempt failed."""
        for change in changes:
            if not is_noted(change):
                continue
            where = (change.job.schedule_id,)
            row = tx.connection.execute(f"SELECT last FROM {self._schedules} WHERE id = ?", where).fetchone()
            if row is not None:
                last = packed_last(noted(last_of(row[0]), change))
                tx.connection.execute(f"UPDATE {self._schedules} SET last = ? WHERE id = ?", (last, *where))

    def put(self, tx: Transaction, before: Job, after: Job) -> None:
        """Write a job that nobody holds as it is from now on."""
        fields = ("state", "queued_at", "waits_for", "key", "slot", "ahead", "past")
        becomes = ", ".join(f"{field} = ?" for field in fields)
        values = [getattr(after, field) for field in fields]
        tx.connection.execute(f"UPDATE {self._name} SET {becomes} WHERE seq = ?", (*values, before.seq))
        tx.counts.move(before.queue, before.state, after.state)

    # Stopping.

    def ask_to_stop(self, tx: Transaction, ids: Sequence[str], reason: str) -> list[str]:
        """Ask running jobs to stop; the first reason stays. Says which of them are running."""
        query = f"UPDATE {self._name} SET cancel_reason = coalesce(cancel_reason, ?) WHERE id = ? AND state = 'running'"
        why = reason or "cancelled"
        return [job_id for job_id in ids if tx.connection.execute(query, (why, job_id)).rowcount]

    def stop(self, tx: Transaction, job_id: str, reason: str) -> None:
        """Ask a running job to stop; a waiting one is cancelled."""
        if not self.ask_to_stop(tx, [job_id], reason):
            waiting = [job for job in self._listing.get(tx.connection, [job_id]) if not is_running(job)]
            self.apply(tx, [cancel(job, tx.now, reason) for job in waiting])

    # Deleting.

    def remove(self, tx: Transaction, ids: Sequence[str]) -> list[str]:
        """Delete ended jobs with their logs; their occurrences stay in the ledger."""
        if not ids:
            return []
        jobs = [job for job in self._listing.get(tx.connection, list(dict.fromkeys(ids))) if job.state.is_final]
        self._ledger.record(tx.connection, [of_job(job) for job in jobs if self._is_of_a_schedule(tx, job)])
        self._drop(tx, jobs)
        return [job.id for job in jobs]

    def unmake(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete waiting jobs without a record, and release what waited for them."""
        self._drop(tx, jobs)
        if jobs:
            self._release(tx, [job.id for job in jobs])

    def _drop(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete jobs with their logs and leave no record."""
        for job in jobs:
            tx.counts.remove(job.queue, job.state)
        tx.connection.executemany(f"DELETE FROM {self._name} WHERE seq = ?", [(job.seq,) for job in jobs])
        tx.connection.executemany(f"DELETE FROM {self._logs} WHERE job_id = ?", [(job.id,) for job in jobs])

    def _is_of_a_schedule(self, tx: Transaction, job: Job) -> bool:
        """Whether a job is an occurrence of a schedule that still exists, and not of an earlier namesake."""
        if job.schedule_id is None:
            return False
        query = f"SELECT created_at FROM {self._schedules} WHERE id = ?"
        row = tx.connection.execute(query, (job.schedule_id,)).fetchone()
        return is_record_of(job, row[0] if row else None)
