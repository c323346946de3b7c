"""Log lines of jobs. A line's id is its job's id and its number, so that a job's lines are together and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo.errors import BulkWriteError

from rota.store.contract import LogLine
from rota.store.mongo.faults import is_duplicate
from rota.store.mongo.listing import EXISTING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Step

NUMBERS = {"_id": "logs"}  # in the collection `meta`: the last number that was given
DIGITS = 16


class Logs:
    """One namespace's log lines."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        """Keep lines of jobs that exist."""
        if not lines:
            return
        with self._connection.call() as db:
            ids = list({line.job_id for line in lines})
            known = {document["_id"] for document in db.jobs.find({"_id": {"$in": ids}, **EXISTING}, {"_id": 1})}
            kept = [line for line in lines if line.job_id in known]
            if kept:
                first = _reserve(db, len(kept))
                db.logs.insert_many([_document(line, number) for number, line in enumerate(kept, first)])

    def list_logs(self, job_id: str, *, after: int, start: int | None, end: int | None, limit: int) -> list[LogLine]:
        query: Document = {"_id": {"$gt": _id_of(job_id, after), "$lt": f"{job_id};"}, "job_id": job_id}
        window = {"$gte": start, "$lt": end}
        if start is not None or end is not None:
            query["at"] = {name: value for name, value in window.items() if value is not None}
        with self._connection.call() as db:
            return [_line_of(document) for document in db.logs.find(query).sort("_id", 1).limit(limit)]

    def forget(self, step: Step, job_ids: Iterable[str]) -> None:
        """Delete the lines of these jobs: one range of the index for each."""
        ranges: list[Document] = [{"_id": {"$gt": f"{job_id}:", "$lt": f"{job_id};"}} for job_id in job_ids]
        if ranges:
            step.logs.delete_many({"$or": ranges})


def logs_after(db: Database, after: str, limit: int) -> list[tuple[str, LogLine]]:
    """The lines of all jobs beyond an id, job by job."""
    found = db.logs.find({"_id": {"$gt": after}}).sort("_id", 1).limit(limit)
    return [(document["_id"], _line_of(document)) for document in found]


def load_logs(db: Database, lines: Sequence[LogLine]) -> int:
    """Take lines with the numbers that they have; how many were new."""
    if not lines:
        return 0
    db.meta.update_one(NUMBERS, {"$max": {"number": max(line.number for line in lines)}}, upsert=True)
    documents = {_id_of(line.job_id, line.number): _document(line, line.number) for line in lines}
    try:
        db.logs.insert_many(list(documents.values()))
    except BulkWriteError as err:
        if not is_duplicate(err):
            raise
        return len(documents) - len(err.details["writeErrors"])
    return len(documents)


def _reserve(db: Database, count: int) -> int:
    """The first of so many numbers."""
    return int(db.meta.upsert(NUMBERS, {"$inc": {"number": count}})["number"]) - count + 1


def _line_of(document: Document) -> LogLine:
    return LogLine(
        job_id=document["job_id"],
        number=int(document["_id"].rpartition(":")[2]),
        at=int(document["at"]),
        level=document["level"],
        text=document["text"],
    )


def _document(line: LogLine, number: int) -> Document:
    fields = {"job_id": line.job_id, "at": line.at, "level": line.level, "text": line.text}
    return {"_id": _id_of(line.job_id, number), **fields}


def _id_of(job_id: str, number: int) -> str:
    return f"{job_id}:{number:0{DIGITS}d}"
