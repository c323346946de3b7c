"""Keeps the occurrence ledger: ranges of expected times without a job, one document per schedule.

A document is read, the model folds the new entries into it, and it is written back unless another process has changed
it meanwhile. An entry that a range covers already is left out, so recording an entry twice changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.schedules.firing import is_not_unique
from rota.model.schedules.occurrence import Occurrence, of_job
from rota.store.mongo.codec import entries_of, job_of, row_of
from rota.store.shared.batching import grouped
from rota.store.shared.ledger import covering, end_of, has_recorded, join, kept_entries
from rota.store.shared.paging import occurrence_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rota.model.jobs.job import Job
    from rota.store.contract import LedgerSpan, Page, Retention
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Step

MOST_TOGETHER = 5_000  # jobs of several schedules that are read together
MOST_ENTRIES = 20_000  # of one schedule, whatever its retention says: a document may have 16 MB


class Ledger:
    """One namespace's ledger."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], limit: int) -> list[Page[Occurrence]]:
        """By three queries for all, if they have no more jobs than one answer is to hold."""
        names = [span.schedule_id for span in spans]
        with self._connection.call() as db:
            since = creation_times(db, names)
            ledgers = db.ledger.by_id(names)
            kept = _kept_jobs(db, [_kept_of(span, since.get(span.schedule_id, 0)) for span in spans], limit + 1)
        if kept is None:
            return [page for span in spans for page in self.list_many_occurrences([span], limit)]
        jobs = grouped(kept, lambda document: str(document["schedule_id"]))
        ranges = {name: _entries(name, since.get(name, 0), ledgers.get(name)) for name in names}
        shown = [_shown(span, ranges[span.schedule_id], jobs.get(span.schedule_id, [])) for span in spans]
        return [occurrence_page(entries, limit) for entries in shown]


def _kept_jobs(db: Database, queries: list[Document], most: int) -> list[Document] | None:
    """The first jobs of one query, or all of several; None if these are too many."""
    if len(queries) == 1:
        return list(db.jobs.find(queries[0], hint="occurrence").sort("fire_at", 1).limit(most))
    found = list(db.jobs.find({"$or": queries}, hint="occurrence").limit(MOST_TOGETHER + 1))
    return found if len(found) <= MOST_TOGETHER else None


def _kept_of(span: LedgerSpan, since: int) -> Document:
    """A query for the jobs of a schedule's expected times; an earlier schedule of that name has others."""
    return {
        "schedule_id": span.schedule_id,
        "fire_at": {"$gte": span.start, "$lt": span.end},
        "created_at": {"$gte": since},
        "$or": [{"state": {"$exists": True}}, {"owed": {"$exists": True}}],
    }


def _shown(span: LedgerSpan, ranges: Sequence[Occurrence], kept: Sequence[Document]) -> list[Occurrence]:
    found = [entry for entry in ranges if entry.through_at >= span.start and entry.earliest_at < span.end]
    of_jobs = [entry for document in kept for entry in _entries_of_job(document)]
    return found + [entry for entry in of_jobs if not has_recorded(ranges, entry)]


def creation_times(db: Database, schedule_ids: Iterable[str | None]) -> dict[str, int]:
    """When those of the schedules that exist were created."""
    found = db.schedules.by_id(schedule_ids, {"created_at": 1}, is_removed=None)
    return {name: int(document["created_at"]) for name, document in found.items()}


def record_entries(step: Step, entries: Sequence[Occurrence], since: Mapping[str, int]) -> None:
    """Write entries, each joined to the ranges that it touches; `since` says when the schedules were created."""
    by_schedule = grouped(entries, lambda entry: entry.schedule_id)
    documents = step.ledger.by_id(by_schedule)
    for name, mine in by_schedule.items():
        document = documents.get(name)
        while True:  # until it is written: another process may write to the same document
            kept = _entries(name, since[name], document)
            for entry in sorted(mine, key=end_of):
                join(kept, entry)
            if _put(step, name, since[name], kept[-MOST_ENTRIES:], document):
                break
            document = step.ledger.find_one({"_id": name})


def entries_ending_at(step: Step, name: str, ends: Sequence[int], made_at: int) -> list[Occurrence]:
    """The entries that end at these times."""
    document = step.ledger.find_one({"_id": name})
    return [entry for entry in _entries(name, made_at, document) if entry.through_at in ends]


def erase_entries(step: Step, name: str, ends: Sequence[int], made_at: int) -> None:
    """Remove the entries that end at these times; if there are none, nothing is written."""
    while ends:
        document = step.ledger.find_one({"_id": name})
        entries = _entries(name, made_at, document)
        kept = [entry for entry in entries if entry.through_at not in ends]
        if len(kept) == len(entries) or _put(step, name, made_at, kept, document):
            return


def load_ledger(step: Step, entries: Sequence[Occurrence]) -> int:
    """Take entries as they are; how many were new."""
    new, names = 0, {entry.schedule_id for entry in entries}
    since = creation_times(step, names)
    for name in names:
        document = step.ledger.find_one({"_id": name})
        kept = {entry.through_at: entry for entry in entries_of(name, (document or {}).get("entries", []))}
        mine = {entry.through_at: entry for entry in entries if entry.schedule_id == name}
        fresh = {at: entry for at, entry in mine.items() if at not in kept}
        _put(step, name, since.get(name, 0), sorted((kept | fresh).values(), key=end_of), document)
        new += len(fresh)
    return new


def refused_by_key(step: Step, jobs: Sequence[Job], since: Mapping[str, int]) -> set[str]:
    """Those of the jobs whose occurrences are recorded as skipped because another job held their key."""
    found = step.ledger.by_id({job.schedule_id for job in jobs if job.schedule_id})
    entries = {name: _entries(name, since[name], document) for name, document in found.items()}
    met = {job.id: covering(entries.get(job.schedule_id or "", []), job.fire_at or 0) for job in jobs}
    return {job_id for job_id, entry in met.items() if entry is not None and is_not_unique(entry.reason)}


def entries_from(db: Database, first: str, batch: int) -> Iterator[Occurrence]:
    """The entries of the schedules from an id on, read in batches as far as they are used."""
    for document in db.ledger.find({"_id": {"$gte": first}}).sort("_id", 1).batch_size(batch):
        yield from entries_of(document["_id"], document.get("entries", []))


def prune_ledger(step: Step, retention: Retention, now: int, limit: int) -> int:
    """Remove entries that are too old or too many, of at most so many schedules."""
    before = now - retention.occurrences_for
    is_full = {"$or": [{"first_at": {"$lte": before}}, {"size": {"$gt": retention.most_occurrences}}]}
    pruned = 0
    for document in list(step.ledger.find(is_full).limit(limit)):
        entries = entries_of(document["_id"], document.get("entries", []))
        kept = kept_entries(entries, retention, now)
        if _put(step, document["_id"], document.get("made_at", 0), kept, document):
            pruned += len(entries) - len(kept)
    return pruned


def _put(step: Step, name: str, made_at: int, entries: Sequence[Occurrence], before: Document | None) -> bool:
    """Write the entries, unless another process has changed the document since it was read."""
    version = 0 if before is None else before.get("version", 0)
    fields: dict[str, Any] = {
        "version": version + 1,
        "made_at": made_at,
        "entries": [row_of(entry) for entry in entries],
        "size": len(entries),
        "first_at": entries[0].through_at if entries else None,
    }
    if before is not None:
        return step.ledger.update_one({"_id": name, "version": version}, {"$set": fields}).matched_count == 1
    return not step.ledger.insert_new([{"_id": name, **fields}])


def _entries_of_job(document: Document) -> list[Occurrence]:
    """The entry of a kept job, or the one that a tombstone still owes."""
    if "owed" in document:
        return entries_of(document["schedule_id"], [document["owed"]])
    return [of_job(job_of(document))]


def _entries(name: str, made_at: int, document: Document | None) -> list[Occurrence]:
    """The kept entries, unless they are of an earlier schedule of that name. A repair of the clock sets a schedule's
    creation back, so a later time is this schedule's."""
    known = document.get("made_at") if document is not None else None
    if document is None or known is None or 0 < known < made_at:
        return []
    return entries_of(name, document.get("entries", []))
