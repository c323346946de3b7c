"""Adder jobs: those that are new become rows; those whose id, slot or key is taken answer with the job that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.job import Job, NewJob, accept
from rota.store.contract import Added

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.postgres.job_rows import JobRows
    from rota.store.postgres.keys import Keys
    from rota.store.postgres.transaction import Transaction


class Adder:
    """One namespace's intake."""

    def __init__(self, jobs: JobRows, keys: Keys) -> None:
        self._jobs = jobs
        self._keys = keys

    def add(self, tx: Transaction, jobs: Sequence[NewJob], now: int) -> list[Added]:
        """Accept jobs of any kind; nothing here ends the transaction, so that it may be the caller's own."""
        known = self._known(tx, [new.id for new in jobs])
        keys = self._keys.holders(tx, [new.key for new in jobs if new.key], now)
        slots = self._keys.live(tx, [new.slot for new in jobs if new.slot])
        live = self._live(tx, [new.waits_for for new in jobs if new.waits_for])
        fresh: list[Job] = []
        answers: dict[int, Added] = {}
        for number, new in enumerate(jobs):
            taken = slots.get(new.slot or "") or keys.get(new.key or "")
            if new.id in known:
                answers[number] = Added(new.id, existed=True)
            elif taken:
                answers[number] = Added(taken, existed=True)
            else:
                fresh.append(accept(new, now, must_wait=new.waits_for in live))
                known.add(new.id)
                live.add(new.id)
                if new.key:
                    keys[new.key] = new.id
                if new.slot:
                    slots[new.slot] = new.id
        made = self._write(tx, fresh, now)
        return [answers.get(number) or made[new.id] for number, new in enumerate(jobs)]

    def _write(self, tx: Transaction, fresh: Sequence[Job], now: int) -> dict[str, Added]:
        """Keys first: whoever comes second to a key waits here, and then finds who was first."""
        self._jobs.tell(tx, fresh)
        keyed = [job for job in fresh if job.key]
        if not keyed:
            placed = self._jobs.insert(tx, fresh, may_copy=False)
            self._keys.put_slots(tx, placed)
            made = {job.id for job in placed}
            return {job.id: Added(job.id, existed=job.id not in made) for job in fresh}
        taken = self._keys.claim(tx, keyed, now)
        free = [job for job in fresh if job.id not in taken]
        placed = self._jobs.insert(tx, free, may_copy=False)
        self._keys.settle_places(tx, [job for job in placed if job.key])
        self._keys.put_slots(tx, placed)
        made = {job.id for job in placed}
        self._keys.give_up(tx, [job for job in free if job.key and job.id not in made])
        answers = {job_id: Added(holder, existed=True) for job_id, holder in taken.items()}
        return answers | {job.id: Added(job.id, existed=job.id not in made) for job in free}

    def _known(self, tx: Transaction, ids: Sequence[str]) -> set[str]:
        return {job_id for (job_id,) in tx.rows("SELECT id FROM {ns}.job WHERE id = ANY(%s)", (list(ids),))}

    def _live(self, tx: Transaction, ids: Sequence[str]) -> set[str]:
        """Those of the jobs that have not ended, and cannot before this transaction has.

        A job that moves while it is looked for is found in its next place.
        """
        found: set[str] = set()
        missing = set(ids)
        while missing:
            for table in ("held", "later", "ready", "running"):
                found |= {
                    job_id
                    for (job_id,) in tx.rows(
                        f"SELECT j.id FROM {{ns}}.job j JOIN {{ns}}.{table} p ON p.seq = j.seq "
                        "WHERE j.id = ANY(%s) ORDER BY p.seq FOR SHARE OF p",
                        (sorted(missing),),
                    )
                }
            missing -= found
            over = tx.rows(
                "SELECT w.id FROM unnest(%s::text[]) AS w (id) LEFT JOIN {ns}.job j ON j.id = w.id "
                "LEFT JOIN {ns}.finished f ON f.seq = j.seq WHERE j.seq IS NULL OR f.seq IS NOT NULL",
                (sorted(missing),),
            )
            missing -= {job_id for (job_id,) in over}
        return found
