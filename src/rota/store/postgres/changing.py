"""Applies changes to jobs that still are what was decided on, and releases the jobs that waited for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.settle import Change, apply_to, cancel
from rota.store.postgres import job_rows, keys
from rota.store.postgres.caller_transaction import write_in
from rota.store.postgres.codec import CODEC, text_of
from rota.store.postgres.faults import StaleRead
from rota.store.shared.changing import check_changes
from rota.store.shared.matching import is_held_by, may_change, may_rescue
from rota.store.shared.sql_changing import SqlChanger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import LastRun
    from rota.store.contract import Refusal
    from rota.store.postgres.connection import Database
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.transaction import Transaction


class Changer(SqlChanger["Transaction"]):
    """One namespace's changes. All transactions lock in one order: schedules by id, jobs by position, counters last."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._database = database

    def change_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        """Apply decisions made by hand."""
        return self._database.write("change", lambda tx, at: self.settle(tx, changes, at, may_change), now)

    def rescue_jobs(self, changes: Sequence[Change], now: int | None) -> list[Refusal]:
        """Apply decisions about jobs whose lease expired; those that another transaction has locked are refused."""

        def settle(tx: Transaction, at: int) -> list[Refusal]:
            return self.settle(tx, changes, at, lambda change, job: may_rescue(change, job, at), job_rows.FREE)

        return self._database.write("change", settle, now, is_allowed_when_sealed=True)

    def delete_jobs(self, ids: Sequence[str]) -> list[str]:
        return self._database.write("delete", lambda tx, _: self.remove_ended(tx, ids), None)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        """End a job with the caller's transaction; False if the lease was lost."""

        def settle(tx: Transaction, at: int) -> list[Refusal]:
            return self.settle(tx, [change], at, lambda change, job: is_held_by(holder, change, job))

        return not write_in(self._database, transaction, settle)

    def settle(
        self,
        tx: Transaction,
        changes: Sequence[Change],
        now: int,
        still_holds: Callable[[Change, Job], bool],
        lock: str = job_rows.UPDATE,
    ) -> list[Refusal]:
        """Apply changes whose jobs still are what was decided on; returns the others. All are checked first."""
        lock_schedules(tx, [change.job.schedule_id for change in changes])
        current = job_rows.locked(tx, [change.job for change in changes], lock)
        checked = check_changes(changes, lambda change: current.get(change.job.seq), still_holds)
        self.apply(tx, checked.accepted, now)
        return checked.refused

    def apply(self, tx: Transaction, changes: Sequence[tuple[Change, Job]], now: int) -> None:
        """Write accepted changes of the jobs beside them, and what follows from them."""
        if not changes:
            return
        job_rows.take(tx, [job for _, job in changes])
        after = [_changed(change, job) for change, job in changes]
        job_rows.put(tx, after)
        keys.move(tx, [(before, job) for (_, before), job in zip(changes, after, strict=True)])
        tx.counts.settle([change for change, _ in changes], now)
        if tx.counts.grew(*(job.state for job in after if job.is_live)):
            tx.notify("jobs")
        self.follow(tx, [change for change, _ in changes], now)
        self.remove(tx, [job for job, (change, _) in zip(after, changes, strict=True) if change.is_removal])

    def stop(self, tx: Transaction, job_id: str, reason: str, now: int) -> None:
        """Ask a running job to stop, or cancel a waiting one; either releases what is held behind it."""
        current = list(job_rows.locked(tx, job_rows.get(tx, [job_id])).values())
        if not current:
            raise StaleRead  # it changed between the two reads
        (job,) = current
        if job.state is State.RUNNING:
            asked = "UPDATE {ns}.running SET cancel_reason = coalesce(cancel_reason, %s) WHERE seq = %s"
            tx.run(asked, (reason, job.seq))
        else:
            self.apply(tx, [(cancel(job, now, reason), job)], now)

    def remove_ended(self, tx: Transaction, ids: Sequence[str]) -> list[str]:
        """Delete those of the jobs that have ended; locks their schedules first."""
        known = [job for job in job_rows.get(tx, list(dict.fromkeys(ids))) if job.state.is_final]
        lock_schedules(tx, [job.schedule_id for job in known])
        current = job_rows.locked(tx, known)
        ended = [current[job.seq] for job in known if job.seq in current]
        self.remove(tx, ended)
        return [job.id for job in ended]

    def get(self, tx: Transaction, ids: Sequence[str]) -> list[Job]:
        return job_rows.get(tx, ids)

    def held_behind(self, tx: Transaction, ids: Sequence[str]) -> list[Job]:
        query = "SELECT seq FROM {ns}.held WHERE waits_for = ANY(%s) ORDER BY seq FOR UPDATE"
        return job_rows.at(tx, [seq for (seq,) in tx.rows(query, (list(ids),))])

    def wait_for(self, tx: Transaction, job: Job, awaited: str) -> None:
        tx.run("UPDATE {ns}.held SET waits_for = %s WHERE seq = %s", (awaited, job.seq))

    def record_last_runs(self, tx: Transaction, last: dict[str, LastRun]) -> None:
        tx.run(
            "UPDATE {ns}.schedule s SET last = w.last FROM unnest(%s::text[], %s::text[]) AS w (id, last) "
            "WHERE s.id = w.id",
            (list(last), [CODEC.packed_last(run) for run in last.values()]),
        )

    def drop(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete jobs with their logs, keys and slots; the transaction has locked them."""
        job_rows.take(tx, jobs)
        for table in ("unique_key", "overlap_slot", "log", "job"):
            tx.run(f"DELETE FROM {{ns}}.{table} WHERE seq = ANY(%s)", ([job.seq for job in jobs],))
        tx.counts.remove_all(jobs)


def lock_schedules(tx: Transaction, names: Iterable[str | None]) -> None:
    """Every write to a schedule, its ledger or its jobs needs this first."""
    wanted = sorted({name for name in names if name is not None})
    if wanted:
        tx.rows("SELECT FROM {ns}.schedule WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (wanted,))


def _changed(change: Change, job: Job) -> Job:
    """The job after a change, as its row can keep it."""
    after = apply_to(job, change)
    return msgspec.structs.replace(after, error=text_of(after.error), cancel_reason=text_of(after.cancel_reason))
