"""Removes ended jobs with their logs; their occurrences stay in the ledger.

If the server has no transactions, a schedule's job leaves a tombstone for a day: its id and its occurrence, in the same
document. A process that delivers the same firing late, from an outbox that it read long ago, collides with it.
"""

from __future__ import annotations

import secrets
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rota.model.occurrence import is_record_of, of_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.job import Job
    from rota.store.mongo.database import Document
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.logs import Logs
    from rota.store.mongo.steps import Step

OWING = "owing"  # the expiry of a tombstone whose entry is not in the ledger yet: no date, so it does not expire


class Remover:
    """Removes one namespace's jobs."""

    def __init__(self, ledger: Ledger, logs: Logs) -> None:
        self._ledger = ledger
        self._logs = logs

    def remove(self, step: Step, jobs: Sequence[Job]) -> list[str]:
        """Remove those of the ended jobs that have not been retried meanwhile; their ids."""
        ended = list({job.id: job for job in jobs}.values())
        self._record(step, ended)
        removed = self._delete(step, ended, {"finished_at": {"$exists": True}}, bury)
        unscheduled = [job.id for job in removed if job.schedule_id is None]
        if unscheduled and not step.is_atomic:
            step.jobs.delete_many({"_id": {"$in": unscheduled}, "gone_at": {"$exists": True}}, hint="_id_")
        return [job.id for job in removed]

    def remove_unmade(self, step: Step, jobs: Sequence[Job]) -> bool:
        """Remove waiting jobs without a record; whether all of them still were in their state."""
        by_state = groupby(sorted(jobs, key=_state), key=_state)
        groups = [(state, list(group)) for state, group in by_state]
        removed = [job for state, group in groups for job in self._delete(step, group, {"state": state}, _wipe)]
        return len(removed) == len(jobs)

    def free(self, step: Step, schedule_id: str, spans: Sequence[tuple[int, int]]) -> None:
        """Remove the occurrences in after < t <= through from tombstones, so that other jobs can be made for them."""
        times = [{"fire_at": {"$gt": after, "$lte": through}} for after, through in spans]
        mine: Document = {"schedule_id": schedule_id, "state": {"$exists": False}, "$or": times}
        step.jobs.update_many(mine, _wipe(secrets.token_hex(8)), hint="occurrence")

    def _record(self, step: Step, jobs: Sequence[Job]) -> None:
        """Write the ledger entries of schedules that still exist, and not of earlier ones of the same name."""
        made = [job for job in jobs if job.schedule_id is not None and job.fire_at is not None]
        if made:
            since = creation_times(step, {job.schedule_id for job in made})
            mine = [job for job in made if is_record_of(job, since.get(job.schedule_id or ""))]
            self._ledger.record(step, [of_job(job) for job in mine], since)

    def _delete(self, step: Step, jobs: Sequence[Job], still: Document, bury_with: Any) -> list[Job]:
        """Delete or bury the documents, and the logs; the jobs that this step, and no other, has removed."""
        ids = [job.id for job in jobs]
        query: Document = {"_id": {"$in": ids}, **still}
        removed = list(jobs)
        if not ids:
            return []
        if step.is_atomic:
            step.jobs.delete_many(query, hint="_id_")
        else:
            token = secrets.token_hex(8)
            if step.jobs.update_many(query, bury_with(token), hint="_id_").modified_count != len(ids):
                written = step.jobs.written(ids, token)
                removed = [job for job in jobs if job.id in written]
        for job in removed:
            step.counts.remove(job.queue, job.state)
        self._logs.forget(step, [job.id for job in removed])
        return removed


def creation_times(step: Step, schedule_ids: Iterable[str | None]) -> dict[str, int]:
    """When those of the schedules that exist were created."""
    found = step.schedules.find({"_id": {"$in": list(schedule_ids)}, "is_removed": None}, {"created_at": 1})
    return {document["_id"]: int(document["created_at"]) for document in found}


def bury(token: str | None = None, *, owed: list[Any] | None = None) -> list[Document]:
    """The update that makes a tombstone. With `owed`, it stays until that ledger entry is written."""
    rest: Document = {"gone_at": "$$NOW"}
    if owed is not None:
        rest = {"gone_at": {"$literal": OWING}, "created_at": 1, "owed": {"$literal": owed}}
    if token is not None:
        rest["token"] = {"$literal": token}
    return [{"$project": {"schedule_id": 1, "fire_at": 1, **rest}}]


def _wipe(token: str) -> list[Document]:
    """The update for a job whose occurrence is in the future: only its id stays, so that another job can be made."""
    return [{"$project": {"gone_at": "$$NOW", "token": {"$literal": token}}}]


def _state(job: Job) -> str:
    return job.state.value
