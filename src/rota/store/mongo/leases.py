"""Renews leases, finds jobs whose lease has expired, and passes on cancel requests and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import UpdateMany, UpdateOne

from rota.failpoints import reach
from rota.store.contract import Extended
from rota.store.mongo.changing import request_cancels
from rota.store.shared.batching import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Steps
    from rota.store.mongo.upkeep import Upkeep


class Leases:
    """One namespace's leases. Each verb writes once to each job."""

    def __init__(self, steps: Steps, upkeep: Upkeep) -> None:
        self._steps = steps
        self._upkeep = upkeep

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None
    ) -> Extended:
        with self._steps.connection.call() as db:
            at = self._steps.control.now(now)
            lost: list[str] = []
            if leases:
                reach("extend.before_commit")
                lost = _extend(db, holder, leases, at + lease_for)
                reach("extend.after_commit")
            asked = {"state": "running", "cancel_reason": {"$exists": True}, "holder": holder}
            found = db.jobs.find(asked, {"cancel_reason": 1}, hint="asked")
            return Extended(
                now=at, lost=lost, cancels={document["_id"]: document["cancel_reason"] for document in found}
            )

    def expired_jobs(self, limit: int, now: int | None) -> list[Job]:
        with self._steps.connection.call() as db:
            at = self._steps.control.now(now)
            self._steps.control.end_dead()
            self._upkeep.finish(db, at)
            found = db.jobs.find({"state": "running", "lease_until": {"$lte": at}}, hint="leased")
            return self._upkeep.readable(list(found.sort("lease_until", 1).limit(limit)), "nobody", at)

    def request_cancels(self, ids: Sequence[str], reason: str) -> list[str]:
        with self._steps.connection.call() as db:
            return request_cancels(db, ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        updates = [
            UpdateOne(_held(holder, [job_id], lease_no), {"$set": {"progress": text}})
            for job_id, lease_no, text in reports
        ]
        if updates:
            with self._steps.connection.call() as db:
                db.jobs.bulk_write(updates, ordered=True)


def _extend(db: Database, holder: str, leases: Sequence[tuple[str, int]], until: int) -> list[str]:
    """Renew exactly these leases; the ids of those that are lost."""
    by_number = grouped(leases, lambda lease: lease[1])
    held = [_held(holder, [job_id for job_id, _ in some], lease_no) for lease_no, some in by_number.items()]
    update = {"$set": {"lease_until": until}}
    if db.jobs.bulk_write([UpdateMany(query, update, hint="_id_") for query in held]).matched_count == len(leases):
        return []
    found = db.jobs.by_id([job_id for job_id, _ in leases], {"lease_no": 1}, state="running", holder=holder)
    return [job_id for job_id, lease_no in leases if found.get(job_id, {}).get("lease_no") != lease_no]


def _held(holder: str, ids: list[str], lease_no: int) -> Document:
    return {"_id": {"$in": ids}, "state": "running", "holder": holder, "lease_no": lease_no}
