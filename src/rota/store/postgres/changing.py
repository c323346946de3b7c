"""Changer of jobs: applied where the jobs still are what was decided on, with all that they set in motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.occurrence import is_noted, is_record_of, noted, of_job
from rota.model.settle import Change, apply_to, cancel, release, still_awaited
from rota.model.state import State
from rota.store.contract import Refusal
from rota.store.postgres.codec import last_of, packed_last, text_of
from rota.store.postgres.faults import StaleLook
from rota.store.shared.matching import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.model.job import Job
    from rota.store.postgres.job_rows import JobRows
    from rota.store.postgres.keys import Keys
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.transaction import Transaction


class Changer:
    """One namespace's changes. Everybody locks in one order: schedules by id, jobs by place, counters last."""

    def __init__(self, jobs: JobRows, keys: Keys, ledger: Ledger) -> None:
        self._jobs = jobs
        self._keys = keys
        self._ledger = ledger

    def settle(
        self,
        tx: Transaction,
        changes: Sequence[Change],
        now: int,
        still_holds: Callable[[Change, Job], bool],
        *,
        waits: bool = True,
    ) -> list[Refusal]:
        """Apply changes where the jobs still are what was decided on; name the others. All are judged first."""
        lock_schedules(tx, [change.job.schedule_id for change in changes])
        current = self._jobs.locked(tx, [change.job for change in changes], waits=waits)
        refused: list[Refusal] = []
        accepted: list[tuple[Change, Job]] = []
        for change in changes:
            job = current.get(change.job.seq)
            if job is None or not still_holds(change, job):
                refused.append(Refusal(change.id, "lease"))
            elif is_running(job) and job.cancel_reason and not change.state.is_final:
                refused.append(Refusal(change.id, "cancel", job.cancel_reason))
            else:
                accepted.append((change, job))
                del current[job.seq]  # a second change of the same job is refused
        self.apply(tx, accepted, now)
        return refused

    def apply(self, tx: Transaction, changes: Sequence[tuple[Change, Job]], now: int) -> None:
        """Write changes that were found to hold for the jobs beside them, and what they set in motion."""
        if not changes:
            return
        self._jobs.take(tx, [job for _, job in changes])
        after = [_changed(change, job) for change, job in changes]
        self._jobs.put(tx, after)
        self._keys.move(tx, [(before, job) for (_, before), job in zip(changes, after, strict=True)])
        tx.counts.move_all((change.job.queue, change.job.state, change.state) for change, _ in changes)
        if tx.counts.grew(*(job.state for job in after if job.is_live)):
            tx.notify("jobs")
        ended = [change for change, _ in changes if change.state.is_final]
        if ended:
            self._let_go(tx, [change.id for change in ended], now)
        self._note_last_runs(tx, [change for change, _ in changes])
        if ended:
            self.remove(tx, [job for job, (change, _) in zip(after, changes, strict=True) if change.is_removal])

    def stop(self, tx: Transaction, job_id: str, reason: str, now: int) -> None:
        """Ask a running job to stop, or cancel one that waits; either lets go of what is held behind it."""
        known = self._jobs.get(tx, [job_id])
        current = list(self._jobs.locked(tx, known).values())
        if not current:
            raise StaleLook  # it moved on between the two looks: the whole transaction looks again
        (job,) = current
        if job.state is State.RUNNING:
            asked = "UPDATE {ns}.running SET cancel_reason = coalesce(cancel_reason, %s) WHERE seq = %s"
            tx.run(asked, (reason, job.seq))
        else:
            self.apply(tx, [(cancel(job, now, reason), job)], now)

    def unmake(self, tx: Transaction, jobs: Sequence[Job], now: int) -> None:
        """Jobs that are locked go without a trace; what waited for them waits no more."""
        if jobs:
            self._jobs.delete(tx, jobs)
            self._let_go(tx, [job.id for job in jobs], now)

    def remove(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Delete ended jobs, whose schedules are locked; their occurrences stay in the ledger."""
        if not jobs:
            return
        names = sorted({job.schedule_id for job in jobs if job.schedule_id and job.fire_at})
        rows = tx.rows("SELECT id, created_at FROM {ns}.schedule WHERE id = ANY(%s)", (names,)) if names else []
        since: dict[str, int] = dict(rows)
        kept = [job for job in jobs if is_record_of(job, since.get(job.schedule_id or ""))]
        self._ledger.record(tx, [of_job(job) for job in kept])
        self._jobs.delete(tx, jobs)

    def remove_ended(self, tx: Transaction, ids: Sequence[str]) -> list[str]:
        """Delete those of the jobs that have ended; their schedules are locked before they are."""
        known = [job for job in self._jobs.get(tx, list(dict.fromkeys(ids))) if job.state.is_final]
        lock_schedules(tx, [job.schedule_id for job in known])
        current = self._jobs.locked(tx, known)
        ended = [current[job.seq] for job in known if job.seq in current]
        self.remove(tx, ended)
        return [job.id for job in ended]

    def _let_go(self, tx: Transaction, over: list[str], now: int) -> None:
        """The jobs that waited for these go on, or wait for what a cancelled link of their chain waited for."""
        rows = tx.rows("SELECT seq FROM {ns}.held WHERE waits_for = ANY(%s) ORDER BY seq FOR UPDATE", (over,))
        for job in self._jobs.at(tx, [seq for (seq,) in rows]):
            awaited = still_awaited(job, lambda job_id: next(iter(self._jobs.get(tx, [job_id])), None))
            if awaited is None:
                self.apply(tx, [(release(job, now), job)], now)
            else:
                tx.run("UPDATE {ns}.held SET waits_for = %s WHERE seq = %s", (awaited, job.seq))

    def _note_last_runs(self, tx: Transaction, changes: Sequence[Change]) -> None:
        """Record with the schedules how their jobs ended, or that an attempt failed."""
        made = [change for change in changes if is_noted(change)]
        if not made:
            return
        names = sorted({change.job.schedule_id or "" for change in made})
        rows = tx.rows("SELECT id, last FROM {ns}.schedule WHERE id = ANY(%s)", (names,))
        last = {name: last_of(packed) for name, packed in rows}
        for change in made:
            name = change.job.schedule_id or ""
            if name in last:
                last[name] = noted(last[name], change)
        if last:
            tx.run(
                "UPDATE {ns}.schedule s SET last = w.last FROM unnest(%s::text[], %s::text[]) AS w (id, last) "
                "WHERE s.id = w.id",
                (list(last), [packed_last(run) for run in last.values()]),
            )


def lock_schedules(tx: Transaction, names: Iterable[str | None]) -> None:
    """Whoever writes to a schedule, its ledger or its jobs has this first."""
    wanted = sorted({name for name in names if name is not None})
    if wanted:
        tx.rows("SELECT FROM {ns}.schedule WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (wanted,))


def _changed(change: Change, job: Job) -> Job:
    """The job after a change, as its row can keep it."""
    after = apply_to(job, change)
    return msgspec.structs.replace(after, error=text_of(after.error), cancel_reason=text_of(after.cancel_reason))
