"""The job collection: adding jobs and reading them. What else happens to jobs: `claiming`, `settling`, `leases`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pymongo.errors import BulkWriteError

from rota.errors import StoreError
from rota.model.job import Job, accept, holds_key
from rota.model.state import FINAL, State
from rota.store.contract import Added
from rota.store.mongo.documents import document_of_new, jobs_of
from rota.store.mongo.places import before, up_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.job import NewJob
    from rota.store.contract import JobFilter
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step

DUPLICATE = 11000
LIVING = {"state": {"$exists": True}}  # and not the tombstone of a job that was removed
_ENDED = [state.value for state in FINAL]


class Jobs:
    """One namespace's jobs."""

    def add(self, step: Step, jobs: Sequence[NewJob], now: int, made: set[str], *, is_careful: bool) -> list[Added]:
        """Insert jobs; those that are there already, by id, by slot or by key, answer with the job that is.

        Most are new and have neither: then nothing is looked up first, unless `is_careful`. `made` outlives a batch
        that another caller broke into.
        """
        look = is_careful or any(new.key or new.slot or new.waits_for for new in jobs)
        known = self._known(step, jobs, now) if look else _Known()
        answers: list[Added] = []
        fresh: list[Job] = []
        for new in jobs:
            there = known.of(new)
            if there is not None:
                answers.append(Added(there, existed=there != new.id or new.id not in made))
                continue
            job = accept(new, now, must_wait=new.waits_for in known.live)
            known.note(job)
            fresh.append(job)
            answers.append(Added(new.id))
        collided = self.insert(step, fresh, made)
        if not all(is_of(error, "_id", "key", "slot", "seq") for error in collided):
            raise StoreError(f"an occurrence has its job already: {collided[0].get('errmsg')}")
        return self.add(step, jobs, now, made, is_careful=True) if collided else answers

    def insert(self, step: Step, jobs: Sequence[Job], made: set[str]) -> list[Document]:
        """Insert jobs and count them; what stood in the way of some (never inside a transaction, which then ends)."""
        if not jobs:
            return []
        documents = [document_of_new(job) for job in jobs]
        collided: list[Document] = []
        try:
            step.space.jobs.insert_many(documents, ordered=False, session=step.session)
        except BulkWriteError as err:
            if step.is_atomic or not is_duplicate(err):
                raise
            collided = err.details["writeErrors"]
        lost = {error["op"]["_id"] for error in collided}
        inserted = [job for job in jobs if job.id not in lost]
        made.update(job.id for job in inserted)
        for (queue, state), number in Counter((job.queue, job.state) for job in inserted).items():
            step.counts.add(queue, state, number)
        return collided

    def live(self, step: Step, slots: Iterable[str]) -> dict[str, str]:
        """The live jobs in the slots of these schedules."""
        wanted = list(slots)
        if not wanted:
            return {}
        found = step.space.jobs.find({"slot": {"$in": wanted}}, {"slot": 1}, session=step.session, hint="slot")
        return {document["slot"]: document["_id"] for document in found}

    def holders(self, step: Step, keys: Iterable[str], now: int) -> dict[str, str]:
        """The jobs that have these keys; a key that only held for a period is freed once that is over."""
        wanted = list(keys)
        if not wanted:
            return {}
        found = step.space.jobs.find(
            {"key": {"$in": wanted}}, {"key": 1, "state": 1, "key_until": 1}, session=step.session
        )
        holders: dict[str, str] = {}
        for document in found:
            if holds_key(State(document["state"]), document.get("key_until", 0), now):
                holders[document["key"]] = document["_id"]
            else:
                step.space.jobs.update_one(
                    {"_id": document["_id"], "key": document["key"], "state": {"$in": _ENDED}},
                    {"$unset": {"key": ""}},
                    session=step.session,
                )
        return holders

    def last_held(self, step: Step, schedule_ids: Sequence[str]) -> dict[str, str]:
        """Of each of these schedules that has some, the last job that is held."""
        if not schedule_ids:
            return {}
        found = step.space.jobs.find(
            {"schedule_id": {"$in": list(schedule_ids)}, "state": "held"}, {"schedule_id": 1}, session=step.session
        ).sort("seq", 1)
        return {document["schedule_id"]: document["_id"] for document in found}

    def made(self, step: Step, schedule_ids: Sequence[str], slots: Iterable[int]) -> set[tuple[str, int]]:
        """The occurrences of these schedules at these times that have, or had, a job."""
        found = step.space.jobs.find(
            {"schedule_id": {"$in": list(schedule_ids)}, "fire_at": {"$in": list(slots)}},
            {"schedule_id": 1, "fire_at": 1},
            session=step.session,
            hint="occurrence",
        )
        return {(document["schedule_id"], document["fire_at"]) for document in found}

    def _known(self, step: Step, jobs: Sequence[NewJob], now: int) -> _Known:
        """Which of these are there already, which slots and keys are taken, and which of the awaited jobs are live."""
        ids = [new.id for new in jobs] + [new.waits_for for new in jobs if new.waits_for]
        found = step.space.jobs.find({"_id": {"$in": ids}}, {"state": 1}, session=step.session, hint="_id_")
        states = {document["_id"]: document.get("state") for document in found}
        live = {job_id for job_id, state in states.items() if state is not None and state not in _ENDED}
        holders = self.holders(step, {new.key for new in jobs if new.key}, now)
        slots = self.live(step, {new.slot for new in jobs if new.slot})
        return _Known(set(states), live, holders, slots)

    # Reading.

    def get(self, space: Space, ids: Sequence[str], session: Any = None) -> list[Job]:
        if not ids:
            return []
        documents = space.jobs.find({"_id": {"$in": list(ids)}, **LIVING}, session=session, hint="_id_")
        found = {job.id: job for job in jobs_of(documents)}
        return [found[job_id] for job_id in ids if job_id in found]

    def find(self, step: Step, job_id: str) -> Job | None:
        return next(iter(self.get(step.space, [job_id], step.session)), None)

    def waiting_of(self, step: Step, schedule_id: str, last_seq: int) -> list[Job]:
        """What a schedule's trigger made, up to a place in line, and nobody has started."""
        documents = step.space.jobs.find(
            {
                "schedule_id": schedule_id,
                "seq": up_to(last_seq),
                "fire_at": {"$exists": True},
                "state": {"$in": [State.SCHEDULED.value, State.QUEUED.value, State.HELD.value]},
            },
            session=step.session,
            hint="made",
        )
        return [job for job in jobs_of(documents) if job.state.is_waiting]  # what cannot be read is parked when claimed

    def oldest_ready(self, space: Space, queue: str) -> int | None:
        """Since when the first in line waits: one look per priority that is in use, never at the whole line."""
        oldest: int | None = None
        ready: Document = {"state": "queued", "queue": queue}
        while True:
            first = space.jobs.find_one(
                ready, {"priority": 1, "queued_at": 1, "run_at": 1}, sort=[("priority", -1), ("seq", 1)]
            )
            if first is None or not isinstance(first.get("priority"), int):
                return oldest
            since = int(first.get("queued_at") or first.get("run_at") or 0)
            oldest = since if oldest is None else min(oldest, since)
            ready["priority"] = {"$lt": first["priority"]}


class _Known:
    """What is known of the jobs that a call wants to add, and of those that it has decided to add."""

    def __init__(
        self,
        ids: set[str] | None = None,
        live: set[str] | None = None,
        holders: dict[str, str] | None = None,
        slots: dict[str, str] | None = None,
    ) -> None:
        self._ids = ids or set()
        self._holders = holders or {}
        self._slots = slots or {}
        self.live = live or set()

    def of(self, new: NewJob) -> str | None:
        """The job that is there already in place of this one."""
        if new.id in self._ids:
            return new.id
        return self._slots.get(new.slot or "") or self._holders.get(new.key or "")

    def note(self, job: Job) -> None:
        self._ids.add(job.id)
        self.live.add(job.id)
        if job.key:
            self._holders[job.key] = job.id
        if job.slot:
            self._slots[job.slot] = job.id


def is_duplicate(err: BulkWriteError) -> bool:
    """Whether all that went wrong is that something is there already."""
    errors: list[Document] = err.details.get("writeErrors", [])
    return not err.details.get("writeConcernErrors") and all(error.get("code") == DUPLICATE for error in errors)


def is_of(error: Document, *names: str) -> bool:
    """Whether a duplicate was met in an index of one of these fields."""
    return bool(set(error.get("keyPattern", {})) & set(names))


def conditions(where: JobFilter, cursor: str | None) -> Document:
    """A filter as a query."""
    seq: Document = {"$exists": True}
    query: Document = {"seq": seq, **LIVING}
    if cursor is not None:
        seq |= before(int(cursor))
    if where.states:
        query["state"] = {"$in": [state.value for state in where.states]}
        if all(state.is_final for state in where.states):
            query["finished_at"] = {"$exists": True}
    if where.task is not None:
        query["task"] = _beginning(where.task[:-1]) if where.task.endswith("*") else where.task
    for name, value in (("queue", where.queue), ("schedule_id", where.schedule_id), ("key", where.key)):
        if value is not None:
            query[name] = value
    created = {"$gte": where.since, "$lt": where.until}
    if where.since is not None or where.until is not None:
        query["created_at"] = {name: value for name, value in created.items() if value is not None}
    return query


def _beginning(prefix: str) -> Document:
    """Text that begins so: up to, and without, what would come after every such text."""
    return {"$gte": prefix, "$lt": prefix + "\U0010ffff"}
