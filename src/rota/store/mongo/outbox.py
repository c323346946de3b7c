"""The outbox: what a firing or an edit sets in motion, kept in the schedule's own document until it is delivered.

A server without transactions writes one document at a time. So a firing or an edit is one guarded write to its
schedule: the schedule advances, and in the same write takes along the jobs to make, the lines and the note to record,
the jobs to stop and the jobs to revoke. That write decides, once, however many schedulers race. Delivering comes after
it, and every part of it is harmless to repeat:

- jobs have their ids, and occurrences are unique, so a second delivery finds them there; a removed job's tombstone
  keeps its place for a day (see `removing`);
- a job whose slot was taken since it was decided waits its turn. A job whose key was taken is not made: an occurrence
  becomes a line of the ledger, and the write that clears the outbox takes the job off the schedule's runs. A later
  delivery finds that line and does not make the job, though the key may be free by then;
- a line that the ledger covers already is left out;
- a note has its id;
- revoking touches only jobs with a place in line up to the edit's own, so a late delivery leaves later ones alone.
  Those who waited for a job that was unmade are released after it; what a death leaves of that, upkeep releases (see
  `Waiters.heal`).

What can be seen of a process that dies in between: a schedule with an outbox, and some of its jobs not made or not
yet revoked. Nothing is lost, since the outbox is as safe as the schedule. While it has one, a schedule counts as due at
once, and whoever reads it (the next scheduler's turn, any list, any edit or firing, the rescuer's round) delivers
first. Nobody therefore sees a schedule that has advanced without what follows from it.

One race is left: two processes deliver the same outbox, and a key becomes free between their looks at it. Then one of
them may make the job of an occurrence that the other records as skipped. The job runs once; the process that clears the
outbox first says whether it counts as a run.

Where the server has transactions, advance and delivery are one, and no outbox is ever written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from pymongo import DeleteOne, UpdateMany

from rota.model.audit_record import AuditRecord, without_runs
from rota.model.edit import is_unmade
from rota.model.firing import as_made, not_unique
from rota.model.history import closed_lines
from rota.model.job import Job, pack_moves
from rota.model.occurrence import Occurrence, of_skip
from rota.model.schedule import LastRun
from rota.model.settle import cancel
from rota.model.state import State
from rota.store.mongo.documents import changed, schedule_of
from rota.store.mongo.guards import is_same
from rota.store.mongo.jobs import is_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.leases import Leases
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.records import Notes
    from rota.store.mongo.removing import Remover
    from rota.store.mongo.settling import Settler
    from rota.store.mongo.space import Document
    from rota.store.mongo.steps import Step

REPLACED = "replaced by the next occurrence"
COUNTED = ("enqueued_at", "job_id", "by_hand", "fired_for")  # what is known of a schedule's runs when they are made
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
    notes: list[AuditRecord] = []
    stops: list[str] = []  # live jobs that the next occurrence replaces
    revoke: str | None = None  # why waiting jobs are cancelled …
    unmake_after: int | None = None  # … or unmade, where their time is later than this …
    last_seq: int = 0  # … up to this place in line
    is_removal: bool = False
    due_at: int | None = None  # when the schedule is due once this is delivered
    before: LastRun | None = None  # what was known of the schedule's runs without these jobs, where they may be refused

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

    def deliver(
        self, step: Step, outboxes: Sequence[Outbox], *, is_edit: bool = False, is_again: bool = False
    ) -> list[str]:
        """Do what they say; where they were written down, take them off their schedules. `is_edit`: nobody has looked
        yet whether the occurrences have jobs. `is_again`: another process may have delivered some of it. Gives the jobs
        that another with their key came before."""
        for outbox in outboxes:
            if outbox.revoke is not None:
                self._revoke(step, outbox)
            if outbox.is_removal:
                self._ledger.forget(step, outbox.schedule_id)
        jobs = [job for outbox in outboxes for job in outbox.jobs]
        now = {job.id: outbox.now for outbox in outboxes for job in outbox.jobs}
        wanted = self._missing(step, jobs, now) if is_edit else self._open(step, outboxes) if is_again else jobs
        refused, unsure = self._make(step, wanted, now)
        if wanted is not jobs:
            unsure |= {job.id for job in jobs} - {job.id for job in wanted}
        missed = self._missed(step, unsure)
        for outbox in outboxes:
            self._reopen(step, outbox)
        lines = [line for outbox in outboxes for line in outbox.lines]
        lines += [of_skip(job.schedule_id or "", not_unique(job, holder)) for job, holder in refused if job.fire_at]
        self._ledger.record(step, lines, {outbox.schedule_id: outbox.created_at for outbox in outboxes})
        said = [without_runs(note, missed) for outbox in outboxes for note in outbox.notes]
        self._notes.add(step.space, [note for note in said if note is not None], step.session)
        for outbox in outboxes:
            for job_id in outbox.stops:
                self.stop(step, job_id, outbox.now, is_noted=False)
        whole = [outbox for outbox in outboxes if not self._correct(step, outbox, missed)]
        if not step.is_atomic:
            self._clear(step, whole)
        return [job.id for job, _ in refused]

    def _reopen(self, step: Step, outbox: Outbox) -> None:
        """Take skipped times out of the ledger. A job that was made ahead for one of them, and skipped when it was due,
        has left a tombstone there: that goes first, so that a second delivery still finds the lines of the first."""
        if not outbox.reopens:
            return
        lines = self._ledger.ending_at(step, outbox.schedule_id, outbox.reopens, outbox.created_at)
        spans = [(line.after_at, line.through_at) for line in lines]  # a tombstone may still owe a line of one time
        self._remover.free(step, outbox.schedule_id, [*spans, *((end - 1, end) for end in outbox.reopens)])
        self._ledger.erase(step, outbox.schedule_id, outbox.reopens, outbox.created_at)

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

    def _missing(self, step: Step, jobs: list[Job], now: Mapping[str, int]) -> list[Job]:
        """Those that are not there yet, by occurrence, slot or key. A collision would end a transaction; elsewhere it
        tells the same."""
        if not step.is_atomic or not jobs:
            return jobs
        times = [(job.schedule_id, job.fire_at) for job in jobs if job.schedule_id and job.fire_at]
        made = self._jobs.made(step, [name for name, _ in times], [at for _, at in times]) if times else set()
        live = self._jobs.live(step, [job.slot for job in jobs if job.slot])
        holders = self._jobs.holders(step, [job.key for job in jobs if job.key], max(now.values()))
        free = [job for job in jobs if job.slot not in live and job.key not in holders]
        return [job for job in free if (job.schedule_id, job.fire_at) not in made]

    def _open(self, step: Step, outboxes: Sequence[Outbox]) -> list[Job]:
        """The jobs of outboxes that may be half delivered, without those whose key was held then: their occurrences are
        recorded as skipped, and the key may have become free since."""
        jobs = [job for outbox in outboxes for job in outbox.jobs]
        since = {outbox.schedule_id: outbox.created_at for outbox in outboxes}
        skipped = self._ledger.refused_by_key(step, [job for job in jobs if job.key and job.fire_at], since)
        return [job for job in jobs if job.id not in skipped]

    def _missed(self, step: Step, unsure: set[str]) -> set[str]:
        """Those of the jobs that were not made, by this delivery or by another."""
        if not unsure:
            return unsure
        found = step.space.jobs.find({"_id": {"$in": list(unsure)}}, {"_id": 1}, session=step.session, hint="_id_")
        return unsure - {document["_id"] for document in found}

    def _make(self, step: Step, jobs: list[Job], now: Mapping[str, int]) -> tuple[list[tuple[Job, str]], set[str]]:
        """Insert the jobs that are not there yet; gives those whose key another job holds, with that, and all that
        something stood in the way of."""
        collided = self._jobs.insert(step, jobs, set())
        taken = {error["op"]["_id"] for error in collided if is_of(error, "slot", "key")}
        refused = []
        for job in (job for job in jobs if job.id in taken):
            holder = self._make_after_all(step, job, now[job.id])
            if holder is not None:
                refused.append((job, holder))
        for job in jobs:
            if job.state is State.HELD:  # what it waits for may have ended since that was decided
                current = self._jobs.find(step, job.id)
                if current is not None and current.state is State.HELD:
                    self._settler.waiters.look_at(step, current, now[job.id])
        return refused, {error["op"]["_id"] for error in collided}

    def _make_after_all(self, step: Step, job: Job, now: int) -> str | None:
        """Another took a job's slot or key since it was decided. An occurrence whose slot a released job has taken over
        waits its turn; one whose key is held is not made: gives the holder. By hand, a job needs both."""
        while True:
            live = self._jobs.live(step, [job.slot] if job.slot else []).get(job.slot or "")
            holder = self._jobs.holders(step, [job.key] if job.key else [], now).get(job.key or "")
            if holder is not None or (live is not None and job.fire_at is None):
                return holder or live
            collided = self._jobs.insert(step, [job if live is None else _held_behind(job, live)], set())
            if not any(is_of(error, "slot", "key") for error in collided):
                return None

    def stop(self, step: Step, job_id: str, now: int, *, is_noted: bool) -> None:
        """Ask a job that is replaced to stop; one that nobody has started is cancelled. `is_noted`: whether its
        schedule hears of that; one that fires has heard of the next run already."""
        if self._leases.ask_to_stop(step.space, [job_id], REPLACED, step.session):
            return
        job = self._jobs.find(step, job_id)
        if job is not None and job.state.is_waiting:
            self._settler.settle(step, [cancel(job, now, REPLACED)], now, is_same, tells_schedules=is_noted)

    def _correct(self, step: Step, outbox: Outbox, missed: Container[str]) -> bool:
        """Take the jobs that were not made off the schedule's runs, in the write that clears the outbox; whether there
        were any. Workers may write at the same time which job ended last."""
        if outbox.before is None or not any(job.id in missed for job in outbox.jobs):
            return False
        made = [job.id for job in outbox.jobs if job.id not in missed]
        mine: Document = {"_id": outbox.schedule_id, "turn": outbox.turn}
        if not step.is_atomic:
            mine["outbox"] = {"$exists": True}
        while (document := step.space.schedules.find_one(mine, session=step.session)) is not None:
            counted = schedule_of(document)
            after = as_made(counted, outbox.before, outbox.jobs, made)
            fields = {f"last.{name}": getattr(after.last, name) for name in COUNTED}
            fields |= {"run_count": after.run_count, "next_at": after.next_at, "due_at": after.due_at, "outbox": None}
            seen = {**mine, "last.job_id": counted.last.job_id}
            if step.space.schedules.update_one(seen, changed(fields), session=step.session).matched_count:
                break
        return True

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
            mine["outbox"] = {"$exists": True}  # another may have cleared it, with what became of its jobs
            updates.append(UpdateMany(mine, changed({"outbox": None, "due_at": due_at}), hint="_id_"))
        if updates:
            step.space.schedules.bulk_write(updates, ordered=False)


def _any(values: Iterable[Any]) -> Any:
    """A condition; of one value the plain one, which is quicker."""
    some = list(values)
    return some[0] if len(some) == 1 else {"$in": some}


def _held_behind(job: Job, holder: str) -> Job:
    """As it would have been decided, had the holder of the slot been seen: it began as a job that waits."""
    first = closed_lines(job)[0]
    reason = f"{first.reason}; waits for {holder}"
    line = first._replace(state=State.HELD, reason=reason, data={"waits_for": holder})
    return msgspec.structs.replace(job, state=State.HELD, waits_for=holder, slot=None, past=pack_moves([line]))
