"""Logs: what jobs wrote. A line's id is its job and its number, so that a job's lines lie together and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymongo import ReturnDocument
from pymongo.errors import BulkWriteError

from rota.store.contract import LogLine
from rota.store.mongo.jobs import LIVING, is_duplicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step

NUMBERS = {"_id": "logs"}  # in the meta collection: the last number that was given
DIGITS = 16


class Logs:
    """One namespace's log lines."""

    def append(self, space: Space, lines: Sequence[LogLine]) -> None:
        """Keep lines of jobs that exist."""
        if not lines:
            return
        ids = list({line.job_id for line in lines})
        known = {document["_id"] for document in space.jobs.find({"_id": {"$in": ids}, **LIVING}, {"_id": 1})}
        kept = [line for line in lines if line.job_id in known]
        if kept:
            first = self._reserve(space, len(kept))
            space.logs.insert_many([_document(line, number) for number, line in enumerate(kept, first)])

    def of(
        self, space: Space, job_id: str, *, after: int, start: int | None, end: int | None, limit: int
    ) -> list[LogLine]:
        query: Document = {"_id": {"$gt": _key(job_id, after), "$lt": f"{job_id};"}, "job_id": job_id}
        window = {"$gte": start, "$lt": end}
        if start is not None or end is not None:
            query["at"] = {name: value for name, value in window.items() if value is not None}
        return [line_of(document) for document in space.logs.find(query).sort("_id", 1).limit(limit)]

    def all(self, space: Space, after: str, limit: int) -> list[tuple[str, LogLine]]:
        """The lines of all jobs beyond an id, job by job."""
        found = space.logs.find({"_id": {"$gt": after}}).sort("_id", 1).limit(limit)
        return [(document["_id"], line_of(document)) for document in found]

    def load(self, space: Space, lines: Sequence[LogLine]) -> int:
        """Take lines with the numbers that they have; how many were new."""
        if not lines:
            return 0
        space.meta.update_one(NUMBERS, {"$max": {"number": max(line.number for line in lines)}}, upsert=True)
        documents = {_key(line.job_id, line.number): _document(line, line.number) for line in lines}
        try:
            space.logs.insert_many(list(documents.values()), ordered=False)
        except BulkWriteError as err:
            if not is_duplicate(err):
                raise
            return len(documents) - len(err.details["writeErrors"])
        return len(documents)

    def forget(self, step: Step, job_ids: Iterable[str]) -> None:
        """One range per job: an index is asked, never the whole."""
        ranges: list[Document] = [{"_id": {"$gt": f"{job_id}:", "$lt": f"{job_id};"}} for job_id in job_ids]
        if ranges:
            step.space.logs.delete_many({"$or": ranges}, session=step.session)

    def _reserve(self, space: Space, count: int) -> int:
        """The first of so many numbers."""
        found: Document = space.meta.find_one_and_update(  # type: ignore[assignment] # an upsert always finds one
            NUMBERS, {"$inc": {"number": count}}, upsert=True, return_document=ReturnDocument.AFTER
        )
        return int(found["number"]) - count + 1


def line_of(document: Document) -> LogLine:
    return LogLine(
        job_id=document["job_id"],
        number=int(document["_id"].rpartition(":")[2]),
        at=int(document["at"]),
        level=document["level"],
        text=document["text"],
    )


def _document(line: LogLine, number: int) -> Document:
    return {
        "_id": _key(line.job_id, number),
        "job_id": line.job_id,
        "at": line.at,
        "level": line.level,
        "text": line.text,
    }


def _key(job_id: str, number: int) -> str:
    return f"{job_id}:{number:0{DIGITS}d}"
