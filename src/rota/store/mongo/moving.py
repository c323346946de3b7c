"""Exports everything that the store holds, page by page, and imports records of another store as they are."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import Job
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LockRecord, LogLine, QueueRecord
from rota.store.mongo.adding import insert
from rota.store.mongo.codec import new_schedule_document
from rota.store.mongo.ledger import entries_from, load_ledger
from rota.store.mongo.listing import get_jobs, oldest_jobs
from rota.store.mongo.operations import line_of, load_locks, load_logs, lock_of
from rota.store.mongo.records import KEPT, add_audit_records, entry_of, load_entries
from rota.store.mongo.schema import CONTROL
from rota.store.shared.changing import load_queue
from rota.store.shared.importing import fresh_jobs, of_kind
from rota.store.shared.paging import keyed_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Page, QueueInfo, Record, Seal
    from rota.store.mongo.database import Database
    from rota.store.mongo.operations import Operations
    from rota.store.mongo.steps import Step, Steps
    from rota.store.shared.parts import OwnPart

Keyed = list[tuple[Any, "Record"]]


class Moving:
    """Exports and imports one namespace."""

    def __init__(self, steps: Steps, operations: Operations) -> None:
        self._steps = steps
        self._operations = operations

    def seal(self, seal: Seal | None) -> None:
        self._steps.control.seal(seal)

    def sealed(self) -> Seal | None:
        return self._steps.control.sealed()

    # Export.

    def dump(self, part: OwnPart, cursor: str | None, limit: int) -> Page[Record]:
        after = msgspec.json.decode(cursor) if cursor else None
        with self._steps.connection.call() as db:
            return keyed_page(_records(db, part, after, limit + 1), limit)

    # Import.

    def load(self, records: Sequence[Record]) -> int:
        """Take records as they are; how many were new."""

        def work(step: Step) -> int:
            new = _load_jobs(step, of_kind(records, Job))
            new += step.schedules.insert_missing(map(new_schedule_document, of_kind(records, Schedule)))
            new += load_ledger(step, of_kind(records, Occurrence))
            return new + sum(_load_queue(step, one, queues.get(one.name)) for one in of_kind(records, QueueRecord))

        with self._steps.connection.call() as db:
            queues = {info.name: info for info in self._operations.list_queues()}
            new = self._steps.run("load", work)
            new += load_entries(db, of_kind(records, Entry)) + add_audit_records(db, of_kind(records, AuditRecord))
            return new + load_logs(db, of_kind(records, LogLine)) + load_locks(db, of_kind(records, LockRecord))


def _records(db: Database, part: OwnPart, after: Any, limit: int) -> Keyed:
    """Records beyond a key, each with its own key."""
    beyond = {"_id": {"$gt": after or ""}}
    match part:
        case "jobs":
            return [(job.seq, job) for job in oldest_jobs(db, after or 0, limit)]
        case "occurrences":
            return _ledger_entries(db, after or ["", 0], limit)
        case "logs":
            return [(line["_id"], line_of(line)) for line in db.logs.in_order(beyond, limit)]
        case "entries":
            return [(entry["_id"], entry_of(entry)) for entry in db.entries.in_order({**beyond, **KEPT}, limit)]
        case "locks":
            return [(lock["_id"], lock_of(lock)) for lock in db.locks.in_order(beyond, limit)]
        case _:
            assert_never(part)


def _ledger_entries(db: Database, after: list[Any], limit: int) -> Keyed:
    """Ledger entries. A schedule may have many, or none beyond the key: read on until there are enough."""
    entries = (([entry.schedule_id, entry.through_at], entry) for entry in entries_from(db, after[0], limit))
    return list(islice((keyed for keyed in entries if keyed[0] > after), limit))


def _load_jobs(step: Step, jobs: Sequence[Job]) -> int:
    ids = [job.id for job in jobs]
    step.jobs.delete_many({"_id": {"$in": ids}, "gone_at": {"$type": "date"}})
    fresh = fresh_jobs(jobs, {job.id for job in get_jobs(step, ids)})
    return len(fresh) - len(insert(step, fresh))


def _load_queue(step: Step, queue: QueueRecord, here: QueueInfo | None) -> bool:
    paused = {"$addToSet": {"paused": queue.name}}
    return load_queue(queue, here, step.counts, lambda: step.meta.update_one(CONTROL, paused))
