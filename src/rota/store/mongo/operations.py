"""Keeps queues with their counters, nodes, logs of jobs, and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError

from rota.model.lock import LockState, decide_lock
from rota.store.contract import LockRecord, LogLine
from rota.store.mongo import notify
from rota.store.mongo.codec import between, given
from rota.store.mongo.control import NOW
from rota.store.mongo.counters import read_series
from rota.store.mongo.listing import EXISTING, first_ready
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.series import Bucket
    from rota.model.lock import LockAct
    from rota.store.contract import Node, QueueInfo
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Step, Steps

NUMBERS = {"_id": "logs"}  # in the collection `meta`: the last number of a log line
DIGITS = 16


class Operations:
    """One namespace's queues, nodes, logs and locks."""

    def __init__(self, steps: Steps, counters: Counters) -> None:
        self._steps = steps
        self._counters = counters

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        with self._steps.connection.call():
            self._steps.control.pause(queue, paused=paused)
        notify.send(self._steps.connection, "jobs")

    def list_queues(self) -> list[QueueInfo]:
        with self._steps.connection.call() as db:
            paused = self._steps.control.turn(None).paused
            return self._counters.read(db).infos(paused, lambda name: _oldest_ready(db, name))

    def read_series(self, start: int, end: int) -> list[Bucket]:
        with self._steps.connection.call() as db:
            return read_series(db, start, end)

    def record_heartbeat(self, node: Node, now: int | None) -> int:
        fields = {"beat_at": NOW if now is None else now, "data": {"$literal": msgspec.json.encode(node).decode()}}
        with self._steps.connection.call() as db:
            return int(db.nodes.upsert({"_id": node.id}, [{"$set": fields}])["beat_at"])

    def list_nodes(self) -> list[Node]:
        with self._steps.connection.call() as db:
            return [
                node_from(str(document["_id"]), str(document.get("data", "")), int(document["beat_at"]))
                for document in db.nodes.find({}).sort("_id", 1)
            ]

    def forget_node(self, node_id: str) -> None:
        with self._steps.connection.call() as db:
            db.nodes.delete_many({"_id": node_id})

    # Logs. A line's id is its job's id and its number, so that a job's lines are together and in order.

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        """Keep lines of jobs that exist."""
        if not lines:
            return
        with self._steps.connection.call() as db:
            known = db.jobs.by_id({line.job_id for line in lines}, {"_id": 1}, **EXISTING)
            kept = [line for line in lines if line.job_id in known]
            if kept:
                last = int(db.meta.upsert(NUMBERS, {"$inc": {"number": len(kept)}})["number"])
                first = last - len(kept) + 1
                db.logs.insert_many([_log_document(line, number) for number, line in enumerate(kept, first)])

    def list_logs(self, job_id: str, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
        ids = {"$gt": _log_id(job_id, after), "$lt": f"{job_id};"}
        query = given(_id=ids, job_id=job_id, at=between(gte=start, lt=end))
        with self._steps.connection.call() as db:
            return [line_of(document) for document in db.logs.in_order(query, limit)]

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int, now: int | None) -> int | None:
        if act == "acquire":
            with self._steps.work(now) as turn:
                return _change_lock(self._steps.connection.db, name, act, token, ttl, turn.now)
        with self._steps.connection.call() as db:
            return _change_lock(db, name, act, token, ttl, self._steps.control.now(now))


def _oldest_ready(db: Database, queue: str) -> int | None:
    """Since when the first ready job waits."""
    firsts = first_ready(db, queue)
    return min((int(first.get("queued_at") or first.get("run_at") or 0) for first in firsts), default=None)


# Logs.


def forget_logs(step: Step, job_ids: Iterable[str]) -> None:
    """Delete the lines of these jobs: one range of the index for each."""
    ranges: list[Document] = [{"_id": {"$gt": f"{job_id}:", "$lt": f"{job_id};"}} for job_id in job_ids]
    if ranges:
        step.logs.delete_many({"$or": ranges})


def load_logs(db: Database, lines: Sequence[LogLine]) -> int:
    """Take lines with the numbers that they have; how many were new."""
    if not lines:
        return 0
    db.meta.update_one(NUMBERS, {"$max": {"number": max(line.number for line in lines)}}, upsert=True)
    return db.logs.insert_missing(_log_document(line, line.number) for line in lines)


def line_of(document: Document) -> LogLine:
    return LogLine(
        job_id=document["job_id"],
        number=int(document["_id"].rpartition(":")[2]),
        at=int(document["at"]),
        level=document["level"],
        text=document["text"],
    )


def _log_document(line: LogLine, number: int) -> Document:
    fields = {"job_id": line.job_id, "at": line.at, "level": line.level, "text": line.text}
    return {"_id": _log_id(line.job_id, number), **fields}


def _log_id(job_id: str, number: int) -> str:
    return f"{job_id}:{number:0{DIGITS}d}"


# Locks.


def _change_lock(db: Database, name: str, act: LockAct, token: str, ttl: int, now: int) -> int | None:
    while True:
        document = db.locks.find_one({"_id": name}) or {"_id": name}
        number, after = decide_lock(_state_of(document), act, token, ttl, now)
        if after is None or _write_lock(db, document, after):
            return number


def _state_of(document: Document) -> LockState:
    number, until, ttl = document.get("number", 0), document.get("until", 0), document.get("ttl")
    token = str(document.get("token", ""))
    return LockState(token=token, until=int(until), number=int(number), ttl=None if ttl is None else int(ttl))


def _write_lock(db: Database, before: Document, after: LockState) -> bool:
    """Write a lock if it still is what was read; a new one is written by the process that is first."""
    guard = {name: before.get(name) for name in ("_id", "token", "until", "number")}
    fields = {"token": after.token, "until": after.until, "number": after.number, "ttl": after.ttl}
    try:
        done = db.locks.update_one(guard, {"$set": fields}, upsert="number" not in before)
    except DuplicateKeyError:
        return False
    return done.matched_count == 1 or done.upserted_id is not None


def lock_of(document: Document) -> LockRecord:
    return LockRecord(name=document["_id"], number=int(document["number"]))


def load_locks(db: Database, locks: Sequence[LockRecord]) -> int:
    """Take numbers that are higher than those here; how many were."""
    free = {"token": "", "until": 0}
    writes = [({"_id": one.name}, {"$max": {"number": one.number}, "$setOnInsert": free}) for one in locks]
    done = db.locks.bulk_write([UpdateOne(*write, upsert=True) for write in writes]) if writes else None
    return done.upserted_count + done.modified_count if done else 0
