"""Prunes expired records, finishes steps that dead processes left half done, and fails jobs that cannot be read."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from rota.errors import StoreUnavailable
from rota.store.contract import Pruned
from rota.store.mongo.changing import release_if_free, remove
from rota.store.mongo.codec import document_of_job, document_of_new, jobs_of, readable_job, unreadable_job
from rota.store.mongo.ledger import prune_ledger
from rota.store.mongo.lookahead import owing, record_owed
from rota.store.mongo.records import finish_edits, prune_audit_records
from rota.store.shared.pruning import Ended, jobs_to_prune

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.job import Job
    from rota.model.state import State
    from rota.store.contract import Retention
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.steps import Step, Steps

FINISH_AT_ONCE = 100  # half-done steps of one kind that one call finishes
_LIVE = ["scheduled", "queued", "running", "held"]


class Upkeep:
    """One namespace's upkeep."""

    def __init__(self, steps: Steps, counters: Counters, schedules: Schedules) -> None:
        self._steps = steps
        self._counters = counters
        self._schedules = schedules
        self._checked_up_to = ""  # how far the round of held jobs has come

    # Half-done steps.

    def finish(self, db: Database, now: int) -> None:
        """Deliver what other processes did not, and release held jobs whose predecessor has ended."""
        self.deliver(db)
        stuck = self._stuck_jobs(db)

        def release(step: Step) -> None:
            for job in stuck:
                release_if_free(step, job, now)

        if stuck:
            self._steps.run("deliver", release)

    def _stuck_jobs(self, db: Database) -> list[Job]:
        """Held jobs that wait for a job which has ended: each call looks at some of all held jobs, in a round."""
        query = {"state": "held", "waits_for": {"$gt": self._checked_up_to}}
        held = list(db.jobs.find(query, hint="held").sort("waits_for", 1).limit(FINISH_AT_ONCE))
        self._checked_up_to = held[-1]["waits_for"] if len(held) == FINISH_AT_ONCE else ""
        awaited = list({document["waits_for"] for document in held})
        found = db.jobs.find({"_id": {"$in": awaited}, "state": {"$in": _LIVE}}, {"_id": 1})
        live = {document["_id"] for document in found}
        return jobs_of(document for document in held if document["waits_for"] not in live)

    def deliver(self, db: Database) -> None:
        """Deliver what other processes did not: outboxes, audit records, ledger entries of skipped jobs."""
        self._schedules.deliver_some(db, FINISH_AT_ONCE)
        finish_edits(db, FINISH_AT_ONCE)
        owed = owing(db, FINISH_AT_ONCE)
        if owed:
            self._steps.run("deliver", lambda step: record_owed(step, owed), is_atomic=False)

    # Pruning.

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        """Remove at most so many expired records of each kind."""
        with self._steps.work(now) as turn:
            ended = self._counters.ended(self._steps.connection.db)
            pruned = self._steps.run("prune", lambda step: self._prune(step, retention, limit, turn.now, ended))
        with suppress(StoreUnavailable), self._steps.call() as db:  # a fresh count may take too long
            self._counters.correct(db, turn.now)
        return pruned

    def _prune(self, step: Step, retention: Retention, limit: int, now: int, ended: int) -> Pruned:
        known: dict[str, Job] = {}

        def find(state: State, through: int, most: int) -> list[Ended]:
            found = _ended(step, state, through, now, most)
            known.update((job.id, job) for job in found)
            return [Ended(job.finished_at or 0, job.seq, job.id) for job in found]

        jobs = [known[job_id] for job_id in jobs_to_prune(retention, limit, now, ended, find)]
        removed = remove(step, jobs)
        entries = prune_ledger(step, retention, now, limit)
        silent = step.nodes.delete_many({"beat_at": {"$lte": now - retention.nodes_for}})
        audits = prune_audit_records(step, now - retention.audit_for, limit)
        return Pruned(jobs=len(removed), occurrences=entries, nodes=silent, audit_records=audits)

    # Jobs that cannot be read.

    def readable(self, documents: Iterable[Document], holder: str, now: int) -> list[Job]:
        """The jobs that can be read. The others fail with the reason, and keep what was found in them."""
        jobs: list[Job] = []
        for document in documents:
            try:
                jobs.append(readable_job(document))
            except msgspec.ValidationError as err:
                self._fail_unreadable(document, err, holder, now)
        return jobs

    def _fail_unreadable(self, document: Document, err: Exception, holder: str, now: int) -> None:
        job = unreadable_job({**document, "created_at": now}, err, holder=holder)
        failed = {**(document_of_job(job) if job.seq else document_of_new(job)), "original": document}
        del failed["_id"]  # it may be of any type

        def write(step: Step) -> None:
            mine = {"_id": document["_id"], "state": document.get("state")}
            if step.jobs.replace_one(mine, failed).modified_count:
                step.counts.add(job.queue, job.state)
                step.counts.add_total(job.queue, job.state.value, 1)

        self._steps.run("park", write)


def _ended(step: Step, state: State, through: int, now: int, limit: int) -> list[Job]:
    """Ended jobs of a state, the oldest first, except those whose key still holds."""
    has_no_key = {"$or": [{"key_until": None}, {"key_until": {"$lte": now}}]}
    found = step.jobs.find({"state": state.value, "finished_at": {"$lte": through}, **has_no_key}, hint="ended")
    return jobs_of(list(found.sort("finished_at", 1).limit(limit)))
