"""Locks: who has which name, until when by the server's clock, and with which fencing number. One document each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from rota.model.clock_repair import TOLERANCE
from rota.store.contract import LockRecord
from rota.store.mongo.head import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.mongo.space import Document, Space


class Locks:
    """One namespace's locks. `now` is None for the server's own clock, which it reads in the same write."""

    def acquire(self, space: Space, name: str, token: str, ttl: int, now: int | None) -> int | None:
        at = NOW if now is None else now
        owner = {"$cond": [{"$gt": ["$until", at]}, "$token", ""]}
        mine = {"$literal": token}
        take = {
            "token": {"$cond": ["$is_free", mine, "$token"]},
            "until": {"$cond": ["$is_free", {"$add": [at, ttl]}, _end_of_another(at)]},
            "ttl": {"$cond": ["$is_free", ttl, "$ttl"]},
            "number": {
                "$cond": [
                    "$is_free",
                    {"$add": [{"$ifNull": ["$number", 0]}, {"$cond": [{"$eq": ["$owner", mine]}, 0, 1]}]},
                    "$number",
                ]
            },
        }
        steps: list[Document] = [
            {"$set": {"owner": owner}},
            {"$set": {"is_free": {"$in": ["$owner", ["", mine]]}}},
            {"$set": take},
            {"$unset": ["owner", "is_free"]},
        ]
        try:
            found: Document = space.locks.find_one_and_update(  # type: ignore[assignment] # an upsert always finds one
                {"_id": name}, steps, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:  # two who made the same lock at once
            return self.acquire(space, name, token, ttl, now)
        return int(found["number"]) if found["token"] == token else None

    def extend(self, space: Space, name: str, token: str, ttl: int, now: int | None) -> bool:
        at = NOW if now is None else now
        mine = {"_id": name, "token": token, "$expr": {"$gt": ["$until", at]}}
        return space.locks.update_one(mine, [{"$set": {"until": {"$add": [at, ttl]}, "ttl": ttl}}]).matched_count == 1

    def release(self, space: Space, name: str, token: str, now: int | None) -> bool:
        """The number stays: the next owner's is higher."""
        at = NOW if now is None else now
        mine = {"_id": name, "token": token, "$expr": {"$gt": ["$until", at]}}
        return space.locks.update_one(mine, {"$set": {"token": "", "until": 0}}).matched_count == 1

    def all(self, space: Space, after: str, limit: int) -> list[LockRecord]:
        found = space.locks.find({"_id": {"$gt": after}}).sort("_id", 1).limit(limit)
        return [LockRecord(name=document["_id"], number=int(document["number"])) for document in found]

    def load(self, space: Space, locks: Sequence[LockRecord]) -> int:
        """Take numbers that are higher than those here; how many were."""
        return sum(self._load(space, lock) for lock in locks)

    def _load(self, space: Space, lock: LockRecord) -> bool:
        fresh: dict[str, Any] = {"token": "", "until": 0, "number": lock.number}
        made = space.locks.update_one({"_id": lock.name}, {"$setOnInsert": fresh}, upsert=True)
        if made.upserted_id is not None:
            return True
        lower = {"_id": lock.name, "number": {"$lt": lock.number}}
        return space.locks.update_one(lower, {"$set": {"number": lock.number}}).modified_count == 1


def _end_of_another(at: Any) -> Document:
    """As the model's lock_end says; of a lock that was taken before terms were kept, the end is left alone."""
    latest = {"$add": [at, "$ttl", TOLERANCE]}
    is_ahead = {"$and": [{"$gt": ["$ttl", None]}, {"$gt": ["$until", latest]}]}
    return {"$cond": [is_ahead, {"$add": [at, "$ttl"]}, "$until"]}
