"""Records at which positions the jobs of each ten minutes are, so that a list by time reads those alone.

The server gives a job its position, a timestamp of its own clock, which no process knows in advance. So a process has
the server mark a slice of time before it adds jobs that were created in it, and again if it still adds such jobs a
minute later. Every job of a slice is then between the slice's first mark and two minutes after its last one. A mark may
be stale, and is never missing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from bson.timestamp import Timestamp
from pymongo import UpdateOne

from rota.model.micros import SECOND
from rota.store.mongo.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterable

SLICE = 600 * SECOND
MARK_AGAIN = 60.0  # seconds
LATER = 120  # seconds: MARK_AGAIN, the deadline of a verb, and time to spare
MOST_KNOWN = 10_000
BEFORE_MARKS = "slice"  # stands for all jobs that were added before there were marks
_LAST = "slice:~"  # after the ids of all slices
_UNSET = Timestamp(0, 0)  # the server puts its time in its place
_NOW = {"$currentDate": {"last": {"$type": "timestamp"}}}


class Positions(NamedTuple):
    """first <= position < end."""

    first: Timestamp
    end: Timestamp


class TimeSlices:
    """The marks that one handle has made."""

    def __init__(self) -> None:
        self._again_at: dict[int, float] = {}  # slice -> when it is to be marked again

    def mark(self, db: Database, created_at: Iterable[int]) -> None:
        """Mark the slices of jobs that are about to be added. It is no part of a transaction: all processes write the
        same documents."""
        now = time.monotonic()
        slices = {at // SLICE for at in created_at}
        stale = [one for one in slices if now >= self._again_at.get(one, now)]
        if not stale:
            return
        alone = Database(db.raw)
        new = [_id_of(one) for one in stale if one not in self._again_at]
        if new:
            _create(alone, new)
        alone.meta.bulk_write([UpdateOne({"_id": _id_of(one)}, _NOW) for one in stale])
        if len(self._again_at) > MOST_KNOWN:
            self._again_at.clear()
        self._again_at.update(dict.fromkeys(stale, now + MARK_AGAIN))


def positions(db: Database, since: int | None, until: int | None) -> Positions | None:
    """The positions between which all jobs are that were created in since <= t < until; None if there is no job."""
    first = _id_of(0 if since is None else since // SLICE)
    last = _LAST if until is None else _id_of((until - 1) // SLICE)
    query = {"$or": [{"_id": {"$gte": first, "$lte": last}}, {"_id": BEFORE_MARKS}]}
    group = {"_id": None, "first": {"$min": "$first"}, "last": {"$max": "$last"}}
    for found in db.meta.aggregate([{"$match": query}, {"$group": group}]):
        return Positions(found["first"], Timestamp(found["last"].time + LATER, 0))
    return None


def prune(db: Database, oldest: Timestamp) -> None:
    """Delete the marks of slices whose jobs were all before this position."""
    before = Timestamp(max(0, oldest.time - LATER), 0)
    db.meta.delete_many({"_id": {"$gte": BEFORE_MARKS, "$lt": _LAST}, "last": {"$lt": before}})


def mark_all(db: Database) -> None:
    """Mark what was added before there were marks as of any time."""
    _create(db, [BEFORE_MARKS])
    db.meta.update_one({"_id": BEFORE_MARKS}, {"$set": {"first": Timestamp(0, 1)}})


def _create(db: Database, ids: list[str]) -> None:
    """Create marks, unless another process has been faster."""
    db.meta.insert_new([{"_id": one, "first": _UNSET, "last": _UNSET} for one in ids])


def _id_of(number: int) -> str:
    return f"slice:{max(0, number):012d}"
