"""Counts jobs by queue and state, right after they are written. Each queue has 16 rows, so that writers rarely meet.

Queued and running jobs share one number, `open`, so that a claim counts nothing. The running ones are counted by the
index of leases, which is small.

If the server has transactions, a ready job that is added alone is counted by the command that begins its verb, in the
control document. That saves the answer to one command. Its number for each queue only rises. If the job is not written,
the rows take the count back.

A process that dies between its jobs and its counters leaves them wrong by its last batch, or by one job that it counted
first. Upkeep corrects them: it counts all jobs, and if the difference is the same twice with no counter written in
between, it subtracts it.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from threading import get_ident
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from pymongo import UpdateOne

from rota.model.jobs.job import State
from rota.model.jobs.series import NAMES, buckets_of, minutes_within
from rota.model.micros import SECOND
from rota.store.mongo.schema import CONTROL
from rota.store.shared.changing import Counts

if TYPE_CHECKING:
    from rota.model.jobs.series import Bucket
    from rota.store.mongo.database import Database, Document

OPEN = "open"
ROWS = 16  # per queue
LARGEST_ADDED = 4_000  # bytes of the control document's numbers, for about 150 queues; others are counted in rows alone
COUNT_EVERY = 600 * SECOND  # a fresh count reads every job
COUNT_AGAIN_AFTER = 20 * SECOND  # longer than any verb may take

_OPEN_STATES = {State.QUEUED.value, State.RUNNING.value}
Key = tuple[str, str]  # queue, and a state, `open` or a total


class Counters:
    """One namespace's counters, as one handle writes them."""

    def __init__(self) -> None:
        self._handle = secrets.randbits(32)
        self._suspicion: tuple[int, int, dict[Key, int]] | None = None  # when, writes so far, by how much
        self._counted_at: int | None = None

    def write(self, db: Database, counts: Counts) -> bool:
        """Add a step's counts to the rows; whether there were any."""
        changes: defaultdict[str, Counter[str]] = defaultdict(lambda: Counter(writes=1))
        for queue, name, number in counts.rows():
            changes[queue][f"n.{_stored_name(name)}"] += number
        row = hash((self._handle, get_ident())) % ROWS
        updates = [
            UpdateOne({"_id": f"{row}:{queue}"}, {"$inc": change}, upsert=True) for queue, change in changes.items()
        ]
        if counts.runs:
            updates.append(_series_update(row, counts.minute, counts.runs))
        if updates:
            db.counters.bulk_write(updates)
        return bool(updates)

    def read(self, db: Database) -> Counts:
        """The sums, with queued and running jobs apart."""
        kept, _ = _sums(db)
        running = _running(db)
        for queue in {queue for queue, name in kept if name == OPEN} | set(running):
            number = running.get(queue, 0)
            kept[queue, State.RUNNING.value] = number
            kept[queue, State.QUEUED.value] = kept.pop((queue, OPEN), 0) - number
        return Counts(dict(kept))

    def ended(self, db: Database) -> int:
        """How many ended jobs are kept."""
        return Counts(dict(_sums(db)[0])).ended()

    def differences(self, db: Database) -> dict[str, int]:
        wrong, _ = _differences(db)
        return {f"{queue}/{'queued' if name == OPEN else name}": number for (queue, name), number in wrong.items()}

    def correct(self, db: Database, now: int) -> None:
        """Every ten minutes: subtract a difference that was found twice while nothing was counted."""
        if self._suspicion is None and self._counted_at is not None and now < self._counted_at + COUNT_EVERY:
            return
        if self._suspicion is not None and now < self._suspicion[0] + COUNT_AGAIN_AFTER:
            return
        self._counted_at = now
        wrong, writes = _differences(db)
        if self._suspicion and self._suspicion[1:] == (writes, wrong):
            _subtract(db, wrong, writes)
            wrong = {}
        self._suspicion = (now, writes, wrong) if wrong else None


def added_to(queue: str) -> Document:
    """What counts a new job in the control document, if that has its queue or room for one more."""
    field = f"added.{quote(queue, safe='').replace('.', '%2E')}"  # a path has dots of its own
    is_counted = {"$or": [{"$gt": [f"${field}", 0]}, {"$lt": [{"$bsonSize": "$added"}, LARGEST_ADDED]}]}
    return {field: {"$cond": [is_counted, {"$sum": [f"${field}", 1]}, "$$REMOVE"]}}


def _stored_name(name: str) -> str:
    return OPEN if name in _OPEN_STATES else name


def _sums(db: Database) -> tuple[Counter[Key], int]:
    """All rows together, and how often they were written."""
    kept: Counter[Key] = Counter()
    writes = 0
    for row in db.counters.find(NO_SERIES):
        queue = str(row["_id"]).partition(":")[2]
        writes += int(row.get("writes", 0))
        for name, number in row.get("n", {}).items():
            kept[queue, name] += int(number)
    added = (db.meta.find_one(CONTROL, {"added": 1}) or {}).get("added", {})
    kept.update({(unquote(name), OPEN): int(number) for name, number in added.items()})
    return kept, writes + sum(map(int, added.values()))


def _running(db: Database) -> dict[str, int]:
    rows = db.jobs.aggregate(
        [{"$match": {"state": "running"}}, {"$group": {"_id": "$queue", "n": {"$sum": 1}}}], hint="leased"
    )
    return {row["_id"]: int(row["n"]) for row in rows}


def _differences(db: Database) -> tuple[dict[Key, int], int]:
    """How far the rows are from a fresh count, and how often they were written; negative if that was meanwhile."""
    _, before = _sums(db)
    by_queue_and_state = {"_id": {"queue": "$queue", "state": "$state"}, "n": {"$sum": 1}}
    groups = db.jobs.aggregate([{"$match": {"state": {"$exists": True}}}, {"$group": by_queue_and_state}])
    counted: Counter[Key] = Counter()
    for group in groups:
        counted[str(group["_id"].get("queue")), _stored_name(str(group["_id"]["state"]))] += int(group["n"])
    kept, writes = _sums(db)
    wrong = {key: kept[key] - counted[key] for key in kept.keys() | counted.keys() if not key[1].startswith("total:")}
    return {key: number for key, number in wrong.items() if number}, writes if before == writes else -writes


def _subtract(db: Database, wrong: dict[Key, int], writes: int) -> None:
    """Once, however many processes do it: the row is named after the number of writes that led to it."""
    changes: dict[str, dict[str, Any]] = {}
    for (queue, name), number in wrong.items():
        changes.setdefault(queue, {})[name] = -number
    db.counters.insert_missing(
        {"_id": f"upkeep-{writes}:{queue}", "writes": 1, "n": change} for queue, change in changes.items()
    )


# What happened minute by minute: documents beside the counters, so that one call writes both. Each minute has one for
# each row of counters that was written in it. Its id begins with a character that is after those of all counters.

FIRST_ID = "~"
NO_SERIES = {"_id": {"$lt": FIRST_ID}}  # the counters alone
_DIGITS = 10


def _series_update(row: int, minute: int, runs: list[int]) -> UpdateOne:
    """What adds numbers to a minute."""
    numbers = {f"runs.{name}": number for name, number in zip(NAMES, runs, strict=True) if number}
    return UpdateOne({"_id": f"{_id_of(minute)}:{row}"}, {"$inc": numbers}, upsert=True)


def read_series(db: Database, start: int, end: int) -> list[Bucket]:
    minutes = minutes_within(start, end)
    found = db.counters.find({"_id": {"$gte": _id_of(minutes.start), "$lt": _id_of(minutes.stop)}})
    runs = [(int(document["_id"][1 : _DIGITS + 1]), document.get("runs", {})) for document in found]
    return buckets_of((minute, [int(numbers.get(name, 0)) for name in NAMES]) for minute, numbers in runs)


def prune_series(db: Database, first: int, last: int) -> None:
    """Keep these minutes."""
    db.counters.delete_many({"_id": {"$gte": FIRST_ID, "$lt": _id_of(first)}})
    db.counters.delete_many({"_id": {"$gte": _id_of(last + 1)}})


def _id_of(minute: int) -> str:
    return f"{FIRST_ID}{max(0, min(minute, 10**_DIGITS - 1)):0{_DIGITS}d}"
