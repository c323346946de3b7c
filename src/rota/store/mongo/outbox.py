"""The outbox: what a firing or an edit sets in motion, kept in the schedule's own document until it is delivered.

A server without transactions writes one document at a time. So a firing or an edit is one guarded write to its
schedule: the schedule advances, and in the same write takes along the jobs to make, the lines and the note to record,
the jobs to stop and the jobs to revoke. That write decides, once, however many schedulers race. Delivering comes after
it, and every part of it is harmless to repeat:

- jobs have their ids, and occurrences are unique, so a second delivery finds them there; a removed job's tombstone
  keeps its place for a day (see `removing`);
- a line that the ledger covers already is left out;
- a note has its id;
- revoking touches only jobs with a place in line up to the edit's own, so a late delivery leaves later ones alone.
  Those who waited for a job that was unmade are released after it; what a death leaves of that, upkeep releases (see
  `Waiters.heal`).

What can be seen of a process that dies in between: a schedule with an outbox, and some of its jobs not made or not
yet revoked. Nothing is lost, since the outbox is as safe as the schedule. While it has one, a schedule counts as due at
once, and whoever reads it (the next scheduler's turn, any list, any edit or firing, the rescuer's round) delivers
first. Nobody therefore sees a schedule that has advanced without what follows from it.

Where the server has transactions, advance and delivery are one, and no outbox is ever written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from pymongo import DeleteOne, UpdateMany

from rota.model.edit import is_unmade
from rota.model.history import closed_lines, pack_moves
from rota.model.job import Job, overlap_key
from rota.model.note import Note
from rota.model.occurrence import Occurrence
from rota.model.settle import cancel
from rota.model.state import State
from rota.store.mongo.documents import changed
from rota.store.mongo.guards import is_same

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.leases import Leases
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.records import Notes
    from rota.store.mongo.removing import Remover
    from rota.store.mongo.settling import Settler
    from rota.store.mongo.space import Document
    from rota.store.mongo.steps import Step

REPLACED = "replaced by the next occurrence"
MOST_ROUNDS = 10  # for jobs that move while they are being revoked


class Outbox(Struct, kw_only=True):
    """What follows from one firing or edit of one schedule."""

    schedule_id: str
    created_at: int
    turn: str  # the token of the write that it was part of
    now: int
    jobs: list[Job] = []
    reopens: list[int] = []  # lines of the ledger that go, by their last time
    lines: list[Occurrence] = []
    notes: list[Note] = []
    stops: list[str] = []  # live jobs that the next occurrence replaces
    revoke: str | None = None  # why waiting jobs are cancelled …
    unmake_after: int | None = None  # … or unmade, where their time is later than this …
    last_seq: int = 0  # … up to this place in line
    is_removal: bool = False
    due_at: int | None = None  # when the schedule is due once this is delivered

    @property
    def is_empty(self) -> bool:
        said = self.jobs or self.reopens or self.lines or self.notes or self.stops or self.is_removal
        return not said and self.revoke is None


_decoder = msgspec.msgpack.Decoder(Outbox)


def packed(outbox: Outbox) -> bytes:
    return msgspec.msgpack.encode(outbox)


def outbox_of(document: Document) -> Outbox | None:
    """What a schedule's document still has to deliver; None where somebody spoiled it by hand."""
    kept = document.get("outbox")
    try:
        return None if kept is None else _decoder.decode(kept)
    except (msgspec.MsgspecError, TypeError):
        return None


class Postman:
    """Delivers outboxes."""

    def __init__(
        self, jobs: Jobs, settler: Settler, ledger: Ledger, leases: Leases, remover: Remover, notes: Notes
    ) -> None:
        self._jobs = jobs
        self._settler = settler
        self._ledger = ledger
        self._leases = leases
        self._remover = remover
        self._notes = notes

    def deliver(self, step: Step, outboxes: Sequence[Outbox], *, is_edit: bool = False) -> None:
        """Do what they say; where they were written down, take them off their schedules. `is_edit`: nobody has looked
        yet whether the occurrences have jobs."""
        for outbox in outboxes:
            if outbox.revoke is not None:
                self._revoke(step, outbox)
            if outbox.is_removal:
                self._ledger.forget(step, outbox.schedule_id)
        jobs = [job for outbox in outboxes for job in outbox.jobs]
        self._make(step, self._missing(step, jobs) if is_edit else jobs, outboxes)
        for outbox in outboxes:
            self._ledger.erase(step, outbox.schedule_id, outbox.reopens, outbox.created_at)
        lines = [line for outbox in outboxes for line in outbox.lines]
        self._ledger.record(step, lines, {outbox.schedule_id: outbox.created_at for outbox in outboxes})
        self._notes.add(step.space, [note for outbox in outboxes for note in outbox.notes], step.session)
        for outbox in outboxes:
            for job_id in outbox.stops:
                self.stop(step, job_id, outbox.now, is_noted=False)
        if not step.is_atomic:
            self._clear(step, outboxes)

    def _revoke(self, step: Step, outbox: Outbox) -> None:
        """Cancel what the schedule's trigger made and nobody has started; runs by hand stay. None was a last run. What
        was made ahead, for a time to come, goes without a trace, and what waited for that waits no more."""
        gone: list[str] = []
        for _ in range(MOST_ROUNDS):
            waiting = self._jobs.waiting_of(step, outbox.schedule_id, outbox.last_seq)
            unmade = [job for job in waiting if is_unmade(job, outbox.unmake_after)]
            rest = [job for job in waiting if not is_unmade(job, outbox.unmake_after)]
            are_unmade = self._remover.unmake(step, unmade)
            gone += [job.id for job in unmade]
            changes = [cancel(job, outbox.now, outbox.revoke or "") for job in rest]
            if not self._settler.settle(step, changes, outbox.now, is_same, tells_schedules=False) and are_unmade:
                break
        if gone:
            self._settler.waiters.let_go(step, gone, outbox.now)

    def _missing(self, step: Step, jobs: list[Job]) -> list[Job]:
        """Those whose occurrences have no job yet. A collision would end a transaction; elsewhere it tells the same."""
        slots = [(job.schedule_id, job.fire_at) for job in jobs if job.schedule_id and job.fire_at]
        if not step.is_atomic or not slots:
            return jobs
        made = self._jobs.made(step, [name for name, _ in slots], [at for _, at in slots])
        return [job for job in jobs if (job.schedule_id, job.fire_at) not in made]

    def _make(self, step: Step, jobs: list[Job], outboxes: Sequence[Outbox]) -> None:
        """Insert the jobs that are not there yet."""
        collided = self._jobs.insert(step, jobs, set())
        taken = {error["op"]["_id"] for error in collided if "key" in error.get("keyPattern", {})}
        for job in (job for job in jobs if job.id in taken):
            self._make_behind(step, job)
        now = {job.id: outbox.now for outbox in outboxes for job in outbox.jobs}
        for job in jobs:
            if job.state is State.HELD:  # what it waits for may have ended since that was decided
                current = self._jobs.find(step, job.id)
                if current is not None and current.state is State.HELD:
                    self._settler.waiters.look_at(step, current, now[job.id])

    def _make_behind(self, step: Step, job: Job) -> None:
        """The schedule's key was taken over by a released job since this one was decided: it waits its turn."""
        key = overlap_key(job.schedule_id or "")
        while True:
            holder = step.space.jobs.find_one({"key": key}, {"_id": 1})
            behind = job
            if holder is not None:
                behind = _held_behind(job, holder["_id"])
            collided = self._jobs.insert(step, [behind], set())
            if not any("key" in error.get("keyPattern", {}) for error in collided):
                return

    def stop(self, step: Step, job_id: str, now: int, *, is_noted: bool) -> None:
        """Ask a job that is replaced to stop; one that nobody has started is cancelled. `is_noted`: whether its
        schedule hears of that; one that fires has heard of the next run already."""
        if self._leases.ask_to_stop(step.space, [job_id], REPLACED, step.session):
            return
        job = self._jobs.find(step, job_id)
        if job is not None and job.state.is_waiting:
            self._settler.settle(step, [cancel(job, now, REPLACED)], now, is_same, tells_schedules=is_noted)

    def _clear(self, step: Step, outboxes: Sequence[Outbox]) -> None:
        """Those that are due again at one time go by one update: a turn is nobody else's."""
        updates: list[UpdateMany | DeleteOne] = []
        alike: dict[int | None, list[Outbox]] = {}
        for outbox in outboxes:
            if outbox.is_removal:
                updates.append(DeleteOne({"_id": outbox.schedule_id, "turn": outbox.turn, "is_removed": True}))
            else:
                alike.setdefault(outbox.due_at, []).append(outbox)
        for due_at, some in alike.items():
            mine = {"_id": _any(outbox.schedule_id for outbox in some), "turn": _any(outbox.turn for outbox in some)}
            updates.append(UpdateMany(mine, changed({"outbox": None, "due_at": due_at}), hint="_id_"))
        if updates:
            step.space.schedules.bulk_write(updates, ordered=False)


def _any(values: Iterable[Any]) -> Any:
    """A condition; of one value the plain one, which is quicker."""
    some = list(values)
    return some[0] if len(some) == 1 else {"$in": some}


def _held_behind(job: Job, holder: str) -> Job:
    """As it would have been decided, had the holder of the key been seen: it began as a job that waits."""
    first = closed_lines(job)[0]
    reason = f"{first.reason}; waits for {holder}"
    line = first._replace(state=State.HELD, reason=reason, data={"waits_for": holder})
    return msgspec.structs.replace(job, state=State.HELD, waits_for=holder, key=None, past=pack_moves([line]))
