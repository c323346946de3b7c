"""Prunes expired records, finishes steps that dead processes left half done, and fails jobs that cannot be read."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from pymongo import ReplaceOne

from rota.errors import StoreUnavailable
from rota.model.jobs.series import first_kept, last_kept
from rota.store.contract import Pruned
from rota.store.mongo import time_slices
from rota.store.mongo.changing import OWING, release_if_free, remove
from rota.store.mongo.codec import document_of_job, jobs_of, position_of, readable_job, unreadable_job
from rota.store.mongo.counters import prune_series
from rota.store.mongo.ledger import prune_ledger
from rota.store.mongo.listing import get_jobs, oldest_jobs, stored_seq
from rota.store.mongo.lookahead import record_owed
from rota.store.mongo.records import finish_edits, prune_audit_records
from rota.store.shared.pruning import Ended, jobs_to_prune

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.jobs.job import Job, State
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
        self._slices_again_at = 0.0  # when marks of time are pruned again

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
        live = db.jobs.by_id({document["waits_for"] for document in held}, {"_id": 1}, state={"$in": _LIVE})
        return jobs_of(document for document in held if document["waits_for"] not in live)

    def deliver(self, db: Database) -> None:
        """Deliver what other processes did not: outboxes, audit records, ledger entries of skipped jobs."""
        self._schedules.deliver_some(db, FINISH_AT_ONCE)
        finish_edits(db, FINISH_AT_ONCE)
        owed = list(db.jobs.find({"gone_at": OWING}, hint="gone").limit(FINISH_AT_ONCE))
        if owed:
            self._steps.run("deliver", lambda step: record_owed(step, owed), is_atomic=False)

    # Counters and pruning.

    def recount(self) -> dict[str, int]:
        with self._steps.connection.call() as db:
            return self._counters.differences(db)

    def prune(self, retention: Retention, limit: int, now: int | None) -> Pruned:
        """Remove at most so many expired records of each kind."""
        with self._steps.work(now) as turn:
            ended = self._counters.ended(self._steps.connection.db)
            pruned = self._steps.run("prune", lambda step: self._prune(step, retention, limit, turn.now, ended))
        with suppress(StoreUnavailable), self._steps.connection.call() as db:  # a fresh count may take too long
            prune_series(db, first_kept(turn.now), last_kept(turn.now))
            if pruned.jobs:
                self._prune_slices(db)
            self._counters.correct(db, turn.now)
        return pruned

    def _prune_slices(self, db: Database) -> None:
        """Once an hour."""
        if time.monotonic() < self._slices_again_at:
            return
        self._slices_again_at = time.monotonic() + 3_600
        for job in oldest_jobs(db, 0, 1):
            time_slices.prune(db, position_of(job.seq))

    def _prune(self, step: Step, retention: Retention, limit: int, now: int, ended: int) -> Pruned:
        ids = jobs_to_prune(retention, limit, now, ended, lambda *asked: _ended(step, now, *asked))
        removed = remove(step, get_jobs(step, ids))
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
        failed = {**document_of_job(job), "original": document}
        del failed["_id"]  # it may be of any type

        def write(step: Step) -> None:
            mine = {"_id": document["_id"], "state": document.get("state")}
            if step.jobs.bulk_write([ReplaceOne(mine, failed)]).modified_count:
                step.counts.add(job.queue, job.state)
                step.counts.add_total(job.queue, job.state.value, 1)

        self._steps.run("park", write)


def _ended(step: Step, now: int, state: State, through: int, limit: int) -> list[Ended]:
    """Ended jobs of a state, the oldest first, except those whose key still holds. The index knows no positions: all
    that ended when the last of them did are read, and the first to be added are taken."""
    has_no_key: Document = {"state": state.value, "$or": [{"key_until": None}, {"key_until": {"$lte": now}}]}
    query = {**has_no_key, "finished_at": {"$lte": through}}
    fields = {"finished_at": 1, "seq": 1}
    found = list(step.jobs.find(query, fields, hint="ended").sort("finished_at", 1).limit(limit))
    if len(found) == limit:
        last = found[-1]["finished_at"]
        ties = step.jobs.find({**has_no_key, "finished_at": last}, fields, hint="ended").sort("seq", 1).limit(limit)
        found = [*(document for document in found if document["finished_at"] < last), *ties][:limit]
    return [Ended(document["finished_at"], stored_seq(document), document["_id"]) for document in found]
