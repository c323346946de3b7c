"""Changes jobs that still are what was decided on, and releases the jobs that waited for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.jobs.settle import Change, cancel
from rota.store.shared.changing import check_changes
from rota.store.shared.matching import is_running, is_same, may_change
from rota.store.shared.sql_changing import SqlChanger
from rota.store.sqlite import clock
from rota.store.sqlite.block_index import BLOCK
from rota.store.sqlite.codec import CODEC, JOB_COLUMNS, SET_CHANGE, jobs_of, row_of_change
from rota.store.sqlite.transaction import rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import LastRun
    from rota.store.contract import Refusal
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.listing import Listing
    from rota.store.sqlite.transaction import Transaction, Transactions


class Changer(SqlChanger["Transaction"]):
    """Changes and deletes one namespace's jobs."""

    def __init__(self, namespace: str, transactions: Transactions, listing: Listing, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._transactions = transactions
        self._listing = listing
        self._name = f"{namespace}_job"
        self._update = f"UPDATE {self._name} SET {SET_CHANGE} WHERE seq = ?"

    def change_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        with self._transactions.work("change", now) as tx:
            tx.notify("jobs")
            return self.settle(tx, changes, may_change)

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
            return self.remove_ended(tx, ids)

    def settle(
        self, tx: Transaction, changes: Sequence[Change], still_holds: Callable[[Change, Job], bool]
    ) -> list[Refusal]:
        """Apply changes where the jobs still are what was decided on; name the others."""
        current = {job.seq: job for job in self._listing.at(tx.connection, [change.job.seq for change in changes])}

        def find(change: Change) -> Job | None:
            job = current.get(change.job.seq)
            return job if job is not None and job.id == change.id else None

        checked = check_changes(changes, find, still_holds)
        self.apply(tx, checked.accepted, tx.now)
        return checked.refused

    def apply(self, tx: Transaction, changes: Sequence[tuple[Change, Job]], now: int) -> None:
        """Write changes that were found to hold, and what follows from them."""
        if changes:
            rows = [(*row_of_change(change), change.job.seq) for change, _ in changes]
            tx.connection.executemany(self._update, rows)
            self.follow(tx, [change for change, _ in changes], now)

    def follow(self, tx: Transaction, changes: Sequence[Change], now: int) -> None:
        """What changes set in motion, once they are written."""
        tx.counts.settle(changes, now)
        succeeded = {change.job.seq // BLOCK for change in changes if change.state is State.SUCCEEDED}
        if succeeded:
            tx.blocks.add_successes(tx.connection, succeeded)
        super().follow(tx, changes, now)
        self.remove_ended(tx, [change.id for change in changes if change.is_removal])

    def get(self, tx: Transaction, ids: Sequence[str]) -> list[Job]:
        return self._listing.get(tx.connection, ids)

    def held_behind(self, tx: Transaction, ids: Sequence[str]) -> list[Job]:
        if not tx.rows("SELECT 1 FROM {ns}.job WHERE state = 'held' LIMIT 1"):
            return []
        query = f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE waits_for IN"
        return jobs_of(rows_in(tx.connection, query, ids, "AND state = 'held'"))

    def wait_for(self, tx: Transaction, job: Job, awaited: str) -> None:
        tx.run("UPDATE {ns}.job SET waits_for = ? WHERE seq = ?", (awaited, job.seq))

    def record_last_runs(self, tx: Transaction, last: dict[str, LastRun]) -> None:
        after = [(CODEC.packed_last(run), name) for name, run in last.items()]
        tx.run_many("UPDATE {ns}.schedule SET last = ? WHERE id = ?", after)

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
            waiting = [job for job in self.get(tx, [job_id]) if not is_running(job)]
            self.apply(tx, [(cancel(job, tx.now, reason), job) for job in waiting], tx.now)

    # Deleting.

    def remove_ended(self, tx: Transaction, ids: Sequence[str]) -> list[str]:
        """Delete those of the jobs that have ended."""
        found = self.get(tx, list(dict.fromkeys(ids))) if ids else []
        ended = [job for job in found if job.state.is_final]
        self.remove(tx, ended)
        return [job.id for job in ended]

    def drop(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete jobs with their logs and leave no record."""
        tx.counts.remove_all(jobs)
        tx.run_many("DELETE FROM {ns}.job WHERE seq = ?", [(job.seq,) for job in jobs])
        tx.run_many("DELETE FROM {ns}.log WHERE job_id = ?", [(job.id,) for job in jobs])
