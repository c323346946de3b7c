"""Leases: renewed by exactly those who have them; jobs asked to stop; jobs whose worker is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import UpdateMany, UpdateOne

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pymongo.client_session import ClientSession

    from rota.store.mongo.space import Document, Space


class Leases:
    """One namespace's leases; each verb is one write to each job that it concerns."""

    def extend(self, space: Space, holder: str, leases: Sequence[tuple[str, int]], until: int) -> list[str]:
        """Renew exactly these leases; the ids of those that are lost."""
        by_number: dict[int, list[str]] = {}
        for job_id, lease_no in leases:
            by_number.setdefault(lease_no, []).append(job_id)
        mine = [_held(holder, ids, lease_no) for lease_no, ids in by_number.items()]
        update = {"$set": {"lease_until": until}}
        renewed = space.jobs.bulk_write([UpdateMany(query, update, hint="_id_") for query in mine], ordered=False)
        if renewed.matched_count == len(leases):
            return []
        kept = {
            (document["_id"], document["lease_no"])
            for query in mine
            for document in space.jobs.find(query, {"lease_no": 1}, hint="_id_")
        }
        return [job_id for job_id, lease_no in leases if (job_id, lease_no) not in kept]

    def cancels(self, space: Space, holder: str) -> dict[str, str]:
        """Which of a holder's jobs were asked to stop, and why."""
        asked = {"state": "running", "cancel_reason": {"$exists": True}, "holder": holder}
        found = space.jobs.find(asked, {"cancel_reason": 1}, hint="asked")
        return {document["_id"]: document["cancel_reason"] for document in found}

    def lapsed(self, space: Space, limit: int, now: int) -> list[Document]:
        found = space.jobs.find({"state": "running", "lease_until": {"$lte": now}}, hint="leased")
        return list(found.sort("lease_until", 1).limit(limit))

    def ask_to_stop(
        self, space: Space, ids: Sequence[str], reason: str, session: ClientSession | None = None
    ) -> list[str]:
        """Which of these run; the first reason stays."""
        if not ids:
            return []
        running: Document = {"_id": {"$in": list(ids)}, "state": "running"}
        space.jobs.update_many(
            {**running, "cancel_reason": None}, {"$set": {"cancel_reason": reason or "cancelled"}}, session=session
        )
        asked = {**running, "cancel_reason": {"$exists": True}}
        found = {document["_id"] for document in space.jobs.find(asked, {"_id": 1}, session=session)}
        return [job_id for job_id in ids if job_id in found]

    def record_progress(self, space: Space, holder: str, notes: Sequence[tuple[str, int, str]]) -> None:
        updates = [
            UpdateOne({**_held(holder, [job_id], lease_no)}, {"$set": {"progress": text}})
            for job_id, lease_no, text in notes
        ]
        if updates:
            space.jobs.bulk_write(updates, ordered=True)


def _held(holder: str, ids: list[str], lease_no: int) -> Document:
    return {"_id": {"$in": ids}, "state": "running", "holder": holder, "lease_no": lease_no}
