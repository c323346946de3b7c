"""The ledger: ranges of occurrences whose jobs are gone or never were; one document per schedule.

A document is read, its lines are folded by the model, and it is written back where nobody changed it meanwhile. A line
that a range covers already is left out, so that recording the same thing twice changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from pymongo.errors import DuplicateKeyError

from rota.model.firing import is_not_unique
from rota.model.occurrence import Occurrence, fold, of_job
from rota.store.contract import Page
from rota.store.mongo.documents import job_of, lines_of, row_of_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rota.model.job import Job
    from rota.store.contract import Retention
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step

MOST_LINES = 20_000  # of one schedule, whatever its retention says: a document has 16 MB


class Ledger:
    """One namespace's occurrences."""

    def record(self, step: Step, lines: Sequence[Occurrence], since: Mapping[str, int]) -> None:
        """Write lines, each joined to the ranges that it touches; `since` says when the schedules were made."""
        by_schedule: dict[str, list[Occurrence]] = {}
        for line in lines:
            by_schedule.setdefault(line.schedule_id, []).append(line)
        if not by_schedule:
            return
        found = step.space.ledger.find({"_id": {"$in": list(by_schedule)}}, session=step.session)
        documents = {document["_id"]: document for document in found}
        for name, mine in by_schedule.items():
            self._record(step, name, mine, since[name], documents.get(name))

    def _record(
        self, step: Step, name: str, lines: Sequence[Occurrence], made_at: int, document: Document | None
    ) -> None:
        """Until it is written: another may write to the same schedule's ledger."""
        while True:
            kept = _of_this_schedule(name, made_at, document)
            for line in sorted(lines, key=lambda line: line.through_at):
                _join(kept, line)
            if self._put(step, name, made_at, kept[-MOST_LINES:], document):
                return
            document = step.space.ledger.find_one({"_id": name}, session=step.session)

    def ending_at(self, step: Step, name: str, ends: Sequence[int], made_at: int) -> list[Occurrence]:
        """The lines that end at these times."""
        document = step.space.ledger.find_one({"_id": name}, session=step.session)
        return [line for line in _of_this_schedule(name, made_at, document) if line.through_at in ends]

    def erase(self, step: Step, name: str, ends: Sequence[int], made_at: int) -> None:
        """Drop the lines that end at these times; where none does any more, nothing is written."""
        while ends:
            document = step.space.ledger.find_one({"_id": name}, session=step.session)
            lines = _of_this_schedule(name, made_at, document)
            kept = [line for line in lines if line.through_at not in ends]
            if len(kept) == len(lines) or self._put(step, name, made_at, kept, document):
                return

    def _put(self, step: Step, name: str, made_at: int, lines: Sequence[Occurrence], before: Document | None) -> bool:
        fields: dict[str, Any] = {
            "made_at": made_at,
            "lines": [row_of_line(line) for line in lines],
            "size": len(lines),
            "first_at": lines[0].through_at if lines else None,
        }
        if before is None:
            try:
                step.space.ledger.insert_one({"_id": name, "rev": 1, **fields}, session=step.session)
            except DuplicateKeyError:
                if step.is_atomic:
                    raise
                return False
            return True
        rev = before.get("rev", 0)
        changed = step.space.ledger.update_one(
            {"_id": name, "rev": rev}, {"$set": {**fields, "rev": rev + 1}}, session=step.session
        )
        return changed.matched_count == 1

    def forget(self, step: Step, schedule_id: str) -> None:
        step.space.ledger.delete_one({"_id": schedule_id}, session=step.session)

    def load(self, step: Step, lines: Sequence[Occurrence], since: Mapping[str, int]) -> int:
        """Take lines as they are; how many were new."""
        new = 0
        for name in {line.schedule_id for line in lines}:
            document = step.space.ledger.find_one({"_id": name}, session=step.session)
            kept = {line.through_at: line for line in lines_of(name, (document or {}).get("lines", []))}
            mine = {line.through_at: line for line in lines if line.schedule_id == name}
            fresh = {at: line for at, line in mine.items() if at not in kept}
            joined = sorted((kept | fresh).values(), key=lambda line: line.through_at)
            self._put(step, name, since.get(name, 0), joined, document)
            new += len(fresh)
        return new

    # Reading.

    def refused_by_key(self, step: Step, jobs: Sequence[Job], since: Mapping[str, int]) -> set[str]:
        """Those of the jobs whose occurrences another job's key refused, as the lines say."""
        names = list({job.schedule_id for job in jobs if job.schedule_id})
        found = step.space.ledger.find({"_id": {"$in": names}}, session=step.session) if names else ()
        lines = {
            document["_id"]: _of_this_schedule(document["_id"], since[document["_id"]], document) for document in found
        }
        return {job.id for job in jobs if _is_refused(lines.get(job.schedule_id or "", []), job.fire_at or 0)}

    def page(
        self, space: Space, schedule_id: str, start: int, end: int, cursor: str | None, limit: int
    ) -> Page[Occurrence]:
        """Ranges and kept jobs together, oldest first."""
        after = int(cursor) if cursor else start - 1
        schedule = space.schedules.find_one({"_id": schedule_id, "is_removed": None}, {"created_at": 1})
        since = int(schedule["created_at"]) if schedule else 0
        ranges = _of_this_schedule(schedule_id, since, space.ledger.find_one({"_id": schedule_id}))
        kept = (
            space.jobs.find(
                {
                    "schedule_id": schedule_id,
                    "fire_at": {"$gt": after, "$lt": end},
                    "created_at": {"$gte": since},
                    "$or": [{"state": {"$exists": True}}, {"owed": {"$exists": True}}],
                },
                hint="occurrence",
            )
            .sort("fire_at", 1)
            .limit(limit + 1)
        )
        lines = [line for line in ranges if line.through_at > after and line.earliest_at < end]
        lines += [line for document in kept for line in _lines_in(document) if not _covers(ranges, line)]
        lines.sort(key=lambda line: line.through_at)
        shown = lines[:limit]
        return Page(shown, str(shown[-1].through_at) if len(lines) > limit else None)

    def documents(self, space: Space, after: str, batch: int) -> Iterator[tuple[str, list[Occurrence]]]:
        """The lines of the schedules from an id on, read batch by batch for as long as somebody wants more."""
        for document in space.ledger.find({"_id": {"$gte": after}}).sort("_id", 1).batch_size(batch):
            yield document["_id"], lines_of(document["_id"], document.get("lines", []))

    # Upkeep.

    def prune(self, step: Step, retention: Retention, now: int, limit: int) -> int:
        """Drop what is too old, and what is too much per schedule; a bounded number of schedules at a time."""
        before = now - retention.occurrences_for
        found = step.space.ledger.find(
            {"$or": [{"first_at": {"$lte": before}}, {"size": {"$gt": retention.most_occurrences}}]},
            session=step.session,
        ).limit(limit)
        return sum(self._thin(step, document, before, retention.most_occurrences) for document in list(found))

    def _thin(self, step: Step, document: Document, before: int, most: int) -> int:
        lines = lines_of(document["_id"], document.get("lines", []))
        recent = [line for line in lines if line.through_at > before]
        kept = recent[max(0, len(recent) - most) :]
        is_put = self._put(step, document["_id"], document.get("made_at", 0), kept, document)
        return len(lines) - len(kept) if is_put else 0


def _lines_in(document: Document) -> list[Occurrence]:
    """The line of a job that is kept, or that a tombstone still owes."""
    if "owed" in document:
        return lines_of(document["schedule_id"], [document["owed"]])
    return [of_job(job_of(document))]


def _of_this_schedule(name: str, made_at: int, document: Document | None) -> list[Occurrence]:
    """The lines that are kept, unless they are of an earlier schedule of that name. A repair of the clock moves back
    when a schedule was made, so a later date is this one's."""
    known = document.get("made_at") if document is not None else None
    if document is None or known is None or 0 < known < made_at:
        return []
    return lines_of(name, document.get("lines", []))


def _place(lines: Sequence[Occurrence], through_at: int) -> int:
    return bisect_left(lines, through_at, key=lambda line: line.through_at)


def _covers(lines: Sequence[Occurrence], line: Occurrence) -> bool:
    place = _place(lines, line.through_at)
    return place < len(lines) and lines[place].after_at < line.through_at


def _is_refused(lines: Sequence[Occurrence], at: int) -> bool:
    place = _place(lines, at)
    return place < len(lines) and lines[place].after_at < at and is_not_unique(lines[place].reason)


def _join(lines: list[Occurrence], line: Occurrence) -> None:
    """Put a line into its place, joined to the neighbours that it touches."""
    if _covers(lines, line):
        return
    place = _place(lines, line.through_at)
    neighbours = lines[max(0, place - 1) : place + 1]
    joined, replaced = fold(line, *neighbours)
    lines[max(0, place - 1) : place + 1] = sorted(
        [joined, *(other for other in neighbours if other not in replaced)], key=lambda other: other.through_at
    )
