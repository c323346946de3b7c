"""Removing: ended jobs go with their logs; their occurrences stay in the ledger.

Where the server has no transactions, a schedule's job leaves a tombstone for a day: its id and its occurrence, in the
same document. Whoever delivers the same firing late, from an outbox that was read long ago, finds the place taken.
"""

from __future__ import annotations

import secrets
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rota.model.occurrence import is_record_of, of_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.job import Job
    from rota.model.occurrence import Occurrence
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.logs import Logs
    from rota.store.mongo.space import Document
    from rota.store.mongo.steps import Step

OWING = "owing"  # when a tombstone goes that owes the ledger a line: what is no time never comes

_ENDED = {"finished_at": {"$exists": True}}


class Remover:
    """Removes jobs of one namespace that have ended."""

    def __init__(self, ledger: Ledger, logs: Logs) -> None:
        self._ledger = ledger
        self._logs = logs

    def remove(self, step: Step, jobs: Sequence[Job]) -> list[str]:
        """Remove those that still are as ended as they were; their ids."""
        gone = list({job.id: job for job in jobs}.values())
        self._record(step, gone)
        removed = self._delete(step, gone) if gone else []
        for job in removed:
            step.counts.remove(job.queue, job.state)
        self._logs.forget(step, [job.id for job in removed])
        return [job.id for job in removed]

    def _record(self, step: Step, jobs: Sequence[Job]) -> None:
        """The lines of occurrences of schedules that still exist, and not of earlier namesakes."""
        made = [job for job in jobs if job.schedule_id is not None and job.fire_at is not None]
        if not made:
            return
        since = made_at(step, {job.schedule_id for job in made})
        lines: list[Occurrence] = [of_job(job) for job in made if is_record_of(job, since.get(job.schedule_id or ""))]
        self._ledger.record(step, lines, since)

    def unmake(self, step: Step, jobs: Sequence[Job]) -> bool:
        """Remove waiting jobs without a trace; whether all of them still were what they are."""
        gone = [job for group in _by_state(jobs) for job in self._wipe_away(step, group)]
        for job in gone:
            step.counts.remove(job.queue, job.state)
        self._logs.forget(step, [job.id for job in gone])
        return len(gone) == len(jobs)

    def free(self, step: Step, schedule_id: str, spans: Sequence[tuple[int, int]]) -> None:
        """Take the occurrences in after < t <= through from the tombstones of jobs, so that others may be made."""
        times = [{"fire_at": {"$gt": after, "$lte": through}} for after, through in spans]
        mine: Document = {"schedule_id": schedule_id, "state": {"$exists": False}, "$or": times}
        step.space.jobs.update_many(mine, _wipe(secrets.token_hex(8)), session=step.session, hint="occurrence")

    def _wipe_away(self, step: Step, jobs: Sequence[Job]) -> Sequence[Job]:
        """Jobs of one state; gives those that this step took away."""
        mine: Document = {"_id": {"$in": [job.id for job in jobs]}, "state": jobs[0].state.value}
        if step.is_atomic:
            step.space.jobs.delete_many(mine, session=step.session, hint="_id_")
            return jobs
        token = secrets.token_hex(8)
        if step.space.jobs.update_many(mine, _wipe(token), hint="_id_").modified_count == len(jobs):
            return jobs
        found = step.space.jobs.find({"_id": mine["_id"], "touch": token}, {"_id": 1})
        wiped = {document["_id"] for document in found}
        return [job for job in jobs if job.id in wiped]

    def _delete(self, step: Step, jobs: Sequence[Job]) -> list[Job]:
        """The documents go; gives the jobs that this step took away, and not another at the same time."""
        ids = [job.id for job in jobs]
        if step.is_atomic:
            step.space.jobs.delete_many({"_id": {"$in": ids}, **_ENDED}, session=step.session, hint="_id_")
            return list(jobs)
        token = secrets.token_hex(8)
        done = step.space.jobs.update_many({"_id": {"$in": ids}, **_ENDED}, bury(token), hint="_id_")
        mine = list(jobs)
        if done.modified_count != len(ids):
            found = step.space.jobs.find({"_id": {"$in": ids}, "touch": token}, {"_id": 1})
            buried = {document["_id"] for document in found}
            mine = [job for job in jobs if job.id in buried]
        plain = [job.id for job in mine if job.schedule_id is None]
        if plain:
            step.space.jobs.delete_many({"_id": {"$in": plain}, "touch": token}, hint="_id_")
        return mine


def made_at(step: Step, schedule_ids: Iterable[str | None]) -> dict[str, int]:
    """When those of the schedules that exist were made."""
    found = step.space.schedules.find(
        {"_id": {"$in": list(schedule_ids)}, "is_removed": None}, {"created_at": 1}, session=step.session
    )
    return {document["_id"]: int(document["created_at"]) for document in found}


def bury(token: str | None = None, *, owed: list[Any] | None = None) -> list[Document]:
    """What is left of a document: nobody else can take away what has no end any more. It stays for as long as it owes
    the ledger a line."""
    touch: Document = {} if token is None else {"touch": {"$literal": token}}
    rest: Document = {"gone_at": "$$NOW"}
    if owed is not None:
        rest = {"gone_at": {"$literal": OWING}, "created_at": 1, "owed": {"$literal": owed}}
    return [{"$project": {"schedule_id": 1, "fire_at": 1, **touch, **rest}}]


def _wipe(token: str) -> list[Document]:
    """What is left of a job whose occurrence is yet to come: its id alone, so that another may be made for that."""
    return [{"$project": {"gone_at": "$$NOW", "touch": {"$literal": token}}}]


def _by_state(jobs: Sequence[Job]) -> list[list[Job]]:
    return [list(group) for _, group in groupby(sorted(jobs, key=_state), key=_state)]


def _state(job: Job) -> str:
    return job.state.value
