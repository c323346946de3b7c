"""Locks: one document each, with its owner's token, its end by the server's clock, and its fencing number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymongo.errors import DuplicateKeyError

from rota.model.clock_repair import TOLERANCE
from rota.store.contract import LockRecord
from rota.store.mongo.control import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Steps


class Locks:
    """One namespace's locks. If `now` is None, the server reads its own clock in the same write."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def acquire_lock(self, name: str, token: str, ttl: int, now: int | None) -> int | None:
        with self._steps.work(now):
            return _acquire(self._steps.connection.db, name, token, ttl, now)

    def extend_lock(self, name: str, token: str, ttl: int, now: int | None) -> bool:
        at = _clock(now)
        with self._steps.call() as db:
            update = [{"$set": {"until": {"$add": [at, ttl]}, "ttl": ttl}}]
            return db.locks.update_one(_held(name, token, at), update).matched_count == 1

    def release_lock(self, name: str, token: str, now: int | None) -> bool:
        """Free a lock. Its number stays: the next owner's is higher."""
        with self._steps.call() as db:
            update = {"$set": {"token": "", "until": 0}}
            return db.locks.update_one(_held(name, token, _clock(now)), update).matched_count == 1


def _clock(now: int | None) -> Any:
    return NOW if now is None else now


def _held(name: str, token: str, at: Any) -> Document:
    return {"_id": name, "token": token, "$expr": {"$gt": ["$until", at]}}


def _acquire(db: Database, name: str, token: str, ttl: int, now: int | None) -> int | None:
    at = _clock(now)
    owner = {"$cond": [{"$gt": ["$until", at]}, "$token", ""]}
    mine = {"$literal": token}
    next_number = {"$add": [{"$ifNull": ["$number", 0]}, {"$cond": [{"$eq": ["$owner", mine]}, 0, 1]}]}
    taken = {
        "token": {"$cond": ["$is_free", mine, "$token"]},
        "until": {"$cond": ["$is_free", {"$add": [at, ttl]}, _end_of_other(at)]},
        "ttl": {"$cond": ["$is_free", ttl, "$ttl"]},
        "number": {"$cond": ["$is_free", next_number, "$number"]},
    }
    stages: list[Document] = [
        {"$set": {"owner": owner}},
        {"$set": {"is_free": {"$in": ["$owner", ["", mine]]}}},
        {"$set": taken},
        {"$unset": ["owner", "is_free"]},
    ]
    try:
        found = db.locks.upsert({"_id": name}, stages)
    except DuplicateKeyError:  # two processes created the same lock at once
        return _acquire(db, name, token, ttl, now)
    return int(found["number"]) if found["token"] == token else None


def _end_of_other(at: Any) -> Document:
    """The end of a lock that another token has, by the model's rule `lock_end`."""
    latest = {"$add": [at, "$ttl", TOLERANCE]}
    is_ahead = {"$and": [{"$gt": ["$ttl", None]}, {"$gt": ["$until", latest]}]}
    return {"$cond": [is_ahead, {"$add": [at, "$ttl"]}, "$until"]}


def locks_after(db: Database, after: str, limit: int) -> list[LockRecord]:
    found = db.locks.find({"_id": {"$gt": after}}).sort("_id", 1).limit(limit)
    return [LockRecord(name=document["_id"], number=int(document["number"])) for document in found]


def load_locks(db: Database, locks: Sequence[LockRecord]) -> int:
    """Take numbers that are higher than those here; how many were."""
    return sum(_load(db, lock) for lock in locks)


def _load(db: Database, lock: LockRecord) -> bool:
    fresh: dict[str, Any] = {"token": "", "until": 0, "number": lock.number}
    made = db.locks.update_one({"_id": lock.name}, {"$setOnInsert": fresh}, upsert=True)
    if made.upserted_id is not None:
        return True
    lower = {"_id": lock.name, "number": {"$lt": lock.number}}
    return db.locks.update_one(lower, {"$set": {"number": lock.number}}).modified_count == 1
