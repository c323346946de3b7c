"""Waiters: held jobs go on when the job that they wait for has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo.errors import BulkWriteError

from rota.model.settle import release, still_awaited
from rota.store.mongo.documents import jobs_of
from rota.store.mongo.guards import is_same
from rota.store.mongo.jobs import is_duplicate
from rota.store.mongo.wire import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.settling import Settler
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step


class Waiters:
    """One namespace's held jobs."""

    def __init__(self, jobs: Jobs, settler: Settler) -> None:
        self._jobs = jobs
        self._settler = settler
        self._looked_at = ""  # how far upkeep has come in its round

    def let_go(self, step: Step, over: Sequence[str], now: int, waiting: Sequence[Document] | None = None) -> None:
        """Those who waited for these jobs go on, or wait for what a cancelled link of their chain waited for."""
        if waiting is None:
            found = step.space.jobs.find(_waiting_for(over), session=step.session, hint="held")
            waiting = list(found.sort("seq", 1))
        for job in jobs_of(waiting):
            self.look_at(step, job, now)

    def looking(self, space: Space, over: Sequence[str]) -> Command:
        """Those who wait for these jobs."""
        return Command({"find": space.jobs.name, "filter": _waiting_for(over), "sort": {"seq": 1}, "hint": "held"})

    def awaited(self, space: Space, ids: Sequence[str]) -> set[str]:
        """Those of the jobs that others wait for."""
        found = space.jobs.find(_waiting_for(ids), {"waits_for": 1}, hint="held")
        return {document["waits_for"] for document in found}

    def look_at(self, step: Step, job: Job, now: int) -> None:
        """Release a held job, unless it still has to wait."""
        awaited = still_awaited(job, lambda job_id: self._jobs.find(step, job_id))
        if awaited is None and release(job, now).slot is not None:
            awaited = self._holder_of(step, job)
        if awaited is None:
            self._release(step, job, now)
        elif awaited != job.waits_for:
            self._wait_for(step, job, awaited)

    def heal(self, space: Space, limit: int) -> list[Job]:
        """Held jobs whose turn it is to be looked at: upkeep goes round them all, call by call."""
        documents = list(
            space.jobs.find({"state": "held", "waits_for": {"$gt": self._looked_at}}, hint="held")
            .sort("waits_for", 1)
            .limit(limit)
        )
        self._looked_at = documents[-1]["waits_for"] if len(documents) == limit else ""
        ids = {document["waits_for"] for document in documents}
        found = space.jobs.find({"_id": {"$in": list(ids)}}, {"state": 1})
        live = {
            document["_id"] for document in found if document.get("state") in {"scheduled", "queued", "running", "held"}
        }
        return jobs_of(document for document in documents if document["waits_for"] not in live)

    def _release(self, step: Step, job: Job, now: int) -> None:
        try:
            self._settler.settle(step, [release(job, now)], now, is_same)
        except BulkWriteError as err:
            if step.is_atomic or not is_duplicate(err):
                raise
            holder = self._holder_of(step, job)  # the schedule fired between the end of one and the turn of the next
            if holder is not None:
                self._wait_for(step, job, holder)

    def _holder_of(self, step: Step, job: Job) -> str | None:
        """Who has the slot that an occurrence takes over when it is released."""
        mine = {"slot": job.schedule_id, "_id": {"$ne": job.id}}
        found = step.space.jobs.find_one(mine, {"_id": 1}, session=step.session)
        return found["_id"] if found else None

    def _wait_for(self, step: Step, job: Job, awaited: str) -> None:
        step.space.jobs.update_one(
            {"_id": job.id, "state": "held"}, {"$set": {"waits_for": awaited}}, session=step.session
        )


def _waiting_for(ids: Sequence[str]) -> Document:
    return {"state": "held", "waits_for": {"$in": list(ids)}}
