"""Adds jobs. A request whose id, slot or key is taken is answered with the job that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import LARGEST_BATCH, Added
from rota.store.postgres import job_rows, keys
from rota.store.postgres.caller_transaction import write_in
from rota.store.postgres.fast import adding as fast
from rota.store.shared.adding import Existing, accept_new

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.store.postgres.connection import Database
    from rota.store.postgres.transaction import Transaction


class Adder:
    """Accepts the jobs of one namespace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_jobs(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        if not jobs:
            return []
        added = fast.add(self._database, jobs, now)
        return added or self._database.write("add", lambda tx, at: self.write(tx, jobs, at), now)

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        """Add jobs in the caller's transaction.

        A single job needs no savepoint: a server slows down if a transaction has more than 64 of them.
        """

        def add(tx: Transaction, at: int) -> list[Added]:
            self._database.check_seal(tx)
            batches = [jobs[start : start + LARGEST_BATCH] for start in range(0, len(jobs), LARGEST_BATCH)]
            return [added for batch in batches for added in self.write(tx, batch, at)]

        return write_in(self._database, transaction, add, savepoint=len(jobs) > 1)

    def write(self, tx: Transaction, jobs: Sequence[NewJob], now: int) -> list[Added]:
        """Add jobs of any kind. Nothing here ends the transaction: it may be the caller's own."""
        known = tx.rows("SELECT id FROM {ns}.job WHERE id = ANY(%s)", ([new.id for new in jobs],))
        found = Existing(
            ids={job_id for (job_id,) in known},
            live=_live(tx, [new.waits_for for new in jobs if new.waits_for]),
            slots=keys.live(tx, [new.slot for new in jobs if new.slot]),
            keys=keys.holders(tx, [new.key for new in jobs if new.key], now),
        )
        existing, fresh = accept_new(jobs, found, now)
        made = _insert(tx, fresh, now)
        return [
            Added(taken, existed=True) if taken else made[new.id] for new, taken in zip(jobs, existing, strict=True)
        ]


def _insert(tx: Transaction, fresh: Sequence[Job], now: int) -> dict[str, Added]:
    """Keys first: a transaction that comes second to a key waits here, and then finds the job of the first."""
    job_rows.notify(tx, fresh)
    placed = job_rows.placed(tx, fresh)
    taken = keys.claim(tx, placed, now)
    free = [job for job in placed if job.id not in taken]
    made = {job.id: job for job in job_rows.insert(tx, free)}
    keys.put(tx, list(made.values()), ["slot"])
    keys.free(tx, "unique_key", [job.seq for job in free if job.key and job.id not in made])
    answers = {job_id: Added(id=holder, existed=True) for job_id, holder in taken.items()}
    return answers | {job.id: Added(id=job.id, existed=job.id not in made) for job in free}


def _live(tx: Transaction, ids: Sequence[str]) -> set[str]:
    """Those of the jobs that have not ended, and cannot end before this transaction.

    A job that changes its state between the two reads is looked for again.
    """
    found: set[str] = set()
    missing = set(ids)
    while missing:
        live = [job for job in job_rows.get(tx, sorted(missing)) if job.is_live]
        found |= {job.id for job in job_rows.locked(tx, live, job_rows.SHARE).values()}
        missing = {job.id for job in live} - found
    return found
