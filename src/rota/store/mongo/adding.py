"""Adds jobs, and finds the jobs that are there already: by id, by slot, by key or by occurrence.

A single job is one insert, which alone decides. A batch is a transaction if the server has them. On a standalone server
it is one insert of many: if the server dies within it, a first part may stay, which a repeated call completes.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from pymongo.errors import BulkWriteError

from rota.errors import StoreError
from rota.model.jobs.job import FINAL, State, can_use_fast_path, holds_key
from rota.store.contract import Added
from rota.store.mongo import notify
from rota.store.mongo.changing import release_held
from rota.store.mongo.codec import document_of_job
from rota.store.mongo.faults import is_duplicate
from rota.store.shared.adding import Existing, accept_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.store.mongo.control import Turn
    from rota.store.mongo.database import Document
    from rota.store.mongo.steps import Step, Steps

_ENDED = [state.value for state in FINAL]
_NOT_LIVE = {None, *_ENDED}  # None: a tombstone
PAUSE = 0.005  # seconds without a new job, after which workers are probably idle


class Adder:
    """Adds jobs to one namespace."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._notified_at = 0.0  # monotonic

    def add_jobs(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        made: set[str] = set()
        queue = self._queue_to_count(jobs)
        with self._steps.work(now, queue) as turn:
            if queue is not None and time.monotonic() > self._notified_at + PAUSE:
                # An idle worker wakes up while the insert waits for the journal, and finds the job.
                notify.send(self._steps.connection, "jobs")
            add = partial(_add, jobs=jobs, turn=turn, made=made)
            run = partial(self._steps.run, "add", is_atomic=len(jobs) > 1)
            try:
                added = run(partial(add, is_careful=False))
            except BulkWriteError as err:  # some of them exist already, which ends a transaction
                if not is_duplicate(err):
                    raise
                made.clear()
                added = run(partial(add, is_careful=True))
            held = [new.id for new in jobs if new.waits_for]
            if held:
                self._steps.run("add", lambda step: release_held(step, held, turn.now))
            notify.send(self._steps.connection, "jobs")
            self._notified_at = time.monotonic()
        return added

    def _queue_to_count(self, jobs: Sequence[NewJob]) -> str | None:
        """The queue of a single job that will most probably be written, and ready. On a standalone server its count
        comes later, in the durable write that the job needs there."""
        is_sure = self._steps.connection.has_transactions and len(jobs) == 1 and can_use_fast_path(jobs[0])
        return jobs[0].queue if is_sure else None


def _add(step: Step, *, jobs: Sequence[NewJob], turn: Turn, made: set[str], is_careful: bool) -> list[Added]:
    """Insert jobs. If one exists already, by id, slot or key, the answer names the existing one.

    Most jobs are new and have neither slot nor key: nothing is read first then, unless `is_careful`. `made` holds the
    jobs that earlier attempts of this call have inserted. If the turn has counted the job, the first attempt takes that
    back: the job counts when it is inserted.
    """
    if turn.counted is not None and not is_careful:
        step.counts.remove(turn.counted, State.QUEUED)
    now = turn.now
    must_look = is_careful or any(new.key or new.slot or new.waits_for for new in jobs)
    existing, fresh = accept_new(jobs, _existing(step, jobs, now) if must_look else Existing(set(), set(), {}, {}), now)
    answers = [
        Added(new.id) if holder is None else Added(holder, existed=holder != new.id or new.id not in made)
        for new, holder in zip(jobs, existing, strict=True)
    ]
    collided = insert(step, fresh)
    made.update({job.id for job in fresh}.difference(error["op"]["_id"] for error in collided))
    if not all(is_of(error, "_id", "key", "slot", "seq") for error in collided):
        raise StoreError(f"an occurrence has its job already: {collided[0].get('errmsg')}")
    return _add(step, jobs=jobs, turn=turn, made=made, is_careful=True) if collided else answers


def insert(step: Step, jobs: Sequence[Job]) -> list[Document]:
    """Insert jobs and count them; the collisions with others (never in a transaction, which they end)."""
    if not jobs:
        return []
    step.slices.mark(step, {job.created_at for job in jobs})
    collided = step.jobs.insert_new([document_of_job(job) for job in jobs])
    lost = {error["op"]["_id"] for error in collided}
    step.counts.add_all(job for job in jobs if job.id not in lost)
    return collided


def is_of(error: Document, *names: str) -> bool:
    """Whether a collision happened in an index of one of these fields."""
    return bool(set(error.get("keyPattern", {})) & set(names))


# Jobs that are there already.


def live_in_slots(step: Step, slots: Iterable[str]) -> dict[str, str]:
    """The live jobs in the slots of these schedules."""
    wanted = list(slots)
    found = step.jobs.find({"slot": {"$in": wanted}}, {"slot": 1}, hint="slot") if wanted else ()
    return {document["slot"]: document["_id"] for document in found}


def key_holders(step: Step, keys: Iterable[str], now: int) -> dict[str, str]:
    """The jobs that hold these keys. A key whose period is over is freed."""
    wanted = list(keys)
    found = step.jobs.find({"key": {"$in": wanted}}, {"key": 1, "state": 1, "key_until": 1}) if wanted else ()
    holders: dict[str, str] = {}
    for document in found:
        if holds_key(State(document["state"]), document.get("key_until", 0), now):
            holders[document["key"]] = document["_id"]
        else:
            expired = {"_id": document["_id"], "key": document["key"], "state": {"$in": _ENDED}}
            step.jobs.update_one(expired, {"$unset": {"key": ""}})
    return holders


def last_held(step: Step, schedule_ids: Sequence[str]) -> dict[str, str]:
    """The last held job of each of these schedules that has one."""
    if not schedule_ids:
        return {}
    found = step.jobs.find({"schedule_id": {"$in": list(schedule_ids)}, "state": "held"}, {"schedule_id": 1})
    return {document["schedule_id"]: document["_id"] for document in found.sort("seq", 1)}


def made_occurrences(step: Step, schedule_ids: Sequence[str], times: Iterable[int]) -> set[tuple[str, int]]:
    """The occurrences of these schedules at these times that have, or had, a job."""
    if not schedule_ids:
        return set()
    query = {"schedule_id": {"$in": list(schedule_ids)}, "fire_at": {"$in": list(times)}}
    found = step.jobs.find(query, {"schedule_id": 1, "fire_at": 1}, hint="occurrence")
    return {(document["schedule_id"], document["fire_at"]) for document in found}


def _existing(step: Step, jobs: Sequence[NewJob], now: int) -> Existing:
    ids = [new.id for new in jobs] + [new.waits_for for new in jobs if new.waits_for]
    found = step.jobs.by_id(ids, {"state": 1})
    return Existing(
        ids=set(found),
        live={job_id for job_id, document in found.items() if document.get("state") not in _NOT_LIVE},
        slots=live_in_slots(step, {new.slot for new in jobs if new.slot}),
        keys=key_holders(step, {new.key for new in jobs if new.key}, now),
    )
