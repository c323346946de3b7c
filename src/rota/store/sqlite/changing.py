"""Changes jobs where they still are what was decided on, with all that a change sets in motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.jobs.settle import Change, cancel, release, still_awaited
from rota.model.schedules.occurrence import is_record_of, of_job
from rota.store.shared.changing import check_changes, last_runs
from rota.store.shared.matching import is_running, is_same
from rota.store.sqlite import clock
from rota.store.sqlite.block_index import BLOCK
from rota.store.sqlite.codec import JOB_COLUMNS, SET_CHANGE, jobs_of, last_of, packed_last, row_of_change
from rota.store.sqlite.transaction import rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import LastRun
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

    def rescue_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        with self._transactions.write("change", now) as tx:
            tx.notify("jobs")
            expired = self._expired_among(tx, changes, clock.lease_now(now))
            return self.settle(tx, changes, lambda change, job: is_same(change, job) and job.seq in expired)

    def _expired_among(self, tx: Transaction, changes: Sequence[Change], lease: tuple[int, str]) -> set[int]:
        """Those of the running jobs, by position, whose lease has expired; one of an earlier boot has."""
        lease_at, boot = lease
        query = f"SELECT seq, lease_until, lease_boot FROM {self._name} WHERE seq IN"
        rows = rows_in(tx.connection, query, [change.job.seq for change in changes], "AND state = 'running'")
        return {seq for seq, until, of_boot in rows if until <= lease_at or of_boot != boot}

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
        tx.counts.settle(changes, tx.now)
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

        def read(names: list[str]) -> dict[str, LastRun]:
            rows = rows_in(tx.connection, f"SELECT id, last FROM {self._schedules} WHERE id IN", names)
            return {name: last_of(last) for name, last in rows}

        after = [(packed_last(last), name) for name, last in last_runs(changes, read).items()]
        if after:
            tx.connection.executemany(f"UPDATE {self._schedules} SET last = ? WHERE id = ?", after)

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

    def delete_unstarted(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete waiting jobs without a record, and release what waited for them."""
        self._drop(tx, jobs)
        if jobs:
            self._release(tx, [job.id for job in jobs])

    def _drop(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete jobs with their logs and leave no record."""
        tx.counts.remove_all(jobs)
        tx.connection.executemany(f"DELETE FROM {self._name} WHERE seq = ?", [(job.seq,) for job in jobs])
        tx.connection.executemany(f"DELETE FROM {self._logs} WHERE job_id = ?", [(job.id,) for job in jobs])

    def _is_of_a_schedule(self, tx: Transaction, job: Job) -> bool:
        """Whether a job is an occurrence of a schedule that still exists, and not of an earlier namesake."""
        if job.schedule_id is None:
            return False
        query = f"SELECT created_at FROM {self._schedules} WHERE id = ?"
        row = tx.connection.execute(query, (job.schedule_id,)).fetchone()
        return is_record_of(job, row[0] if row else None)
