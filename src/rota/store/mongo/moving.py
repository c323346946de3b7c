"""Exports everything that the store holds, page by page, and imports records of another store as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, assert_never

import msgspec
from pymongo.errors import BulkWriteError

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.model.state import State
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord
from rota.store.mongo.adding import insert
from rota.store.mongo.codec import new_schedule_document
from rota.store.mongo.faults import is_duplicate
from rota.store.mongo.ledger import ledger_after, load_ledger
from rota.store.mongo.listing import get_jobs, oldest_jobs
from rota.store.mongo.operations import load_locks, load_logs, locks_after, logs_after
from rota.store.mongo.records import add_audit_records, audit_records_after, entries_after, load_entries
from rota.store.mongo.schema import CONTROL
from rota.store.shared.counting import lacking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Part, QueueInfo, Record
    from rota.store.mongo.database import Database
    from rota.store.mongo.operations import Operations
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.steps import Step, Steps
    from rota.store.mongo.upkeep import Upkeep

Kind = TypeVar("Kind")
Keyed = list[tuple[Any, "Record"]]


class Moving:
    """Exports and imports one namespace."""

    def __init__(self, steps: Steps, schedules: Schedules, operations: Operations, upkeep: Upkeep) -> None:
        self._steps = steps
        self._schedules = schedules
        self._operations = operations
        self._upkeep = upkeep

    # Export.

    def dump(self, part: Part, cursor: str | None, limit: int) -> Page[Record]:
        after = msgspec.json.decode(cursor) if cursor else None
        with self._steps.call() as db:
            self._upkeep.deliver(db)
            records = self._records(db, part, after, limit + 1)
        shown = records[:limit]
        more = msgspec.json.encode(shown[-1][0]).decode() if len(records) > limit else None
        return Page([record for _, record in shown], more)

    def _records(self, db: Database, part: Part, after: Any, limit: int) -> Keyed:
        """Records beyond a key, each with its own key."""
        match part:
            case "jobs":
                return [(job.seq, job) for job in oldest_jobs(db, after or 0, limit)]
            case "schedules":
                page = self._schedules.list_schedules(None, after, limit)
                return [(schedule.id, schedule) for schedule in page.items]
            case "occurrences":
                return _ledger_entries(db, after or ["", 0], limit)
            case "logs":
                return list(logs_after(db, after or "", limit))
            case "entries":
                return list(entries_after(db, after or "", limit))
            case "audit_records":
                return [(audit.id, audit) for audit in audit_records_after(db, after or "", limit)]
            case "locks":
                return [(lock.name, lock) for lock in locks_after(db, after or "", limit)]
            case "queues":
                infos = [info for info in self._operations.list_queues() if after is None or info.name > after]
                return [
                    (info.name, QueueRecord(name=info.name, is_paused=info.is_paused, totals=info.totals))
                    for info in infos[:limit]
                ]
            case _:
                assert_never(part)

    # Import.

    def load(self, records: Sequence[Record]) -> int:
        """Take records as they are; how many were new."""

        def work(step: Step) -> int:
            new = _load_jobs(step, _of(records, Job)) + _load_schedules(step, _of(records, Schedule))
            new += _load_ledger(step, _of(records, Occurrence))
            return new + sum(_load_queue(step, record, queues) for record in _of(records, QueueRecord))

        with self._steps.call() as db:
            queues = {info.name: info for info in self._operations.list_queues()}
            new = self._steps.run("load", work)
            new += load_entries(db, _of(records, Entry)) + add_audit_records(db, _of(records, AuditRecord))
            return new + load_logs(db, _of(records, LogLine)) + load_locks(db, _of(records, LockRecord))


def _ledger_entries(db: Database, after: list[Any], limit: int) -> Keyed:
    """Ledger entries. A schedule may have many, or none beyond the key: read on until there are enough."""
    entries: Keyed = []
    for name, kept in ledger_after(db, after[0], limit + 1):
        rest = [entry for entry in kept if name > after[0] or entry.through_at > after[1]]
        entries += [([name, entry.through_at], entry) for entry in rest]
        if len(entries) >= limit:
            break
    return entries[:limit]


def _load_ledger(step: Step, entries: Sequence[Occurrence]) -> int:
    ids = list({entry.schedule_id for entry in entries})
    found = step.schedules.find({"_id": {"$in": ids}}, {"created_at": 1}) if ids else ()
    return load_ledger(step, entries, {document["_id"]: int(document["created_at"]) for document in found})


def _load_jobs(step: Step, jobs: Sequence[Job]) -> int:
    """A running job's lease has expired: its worker is on the other store."""
    ids = [job.id for job in jobs]
    step.jobs.delete_many({"_id": {"$in": ids}, "gone_at": {"$type": "date"}})
    known = {job.id for job in get_jobs(step, ids)}
    fresh = {job.id: job for job in jobs if job.id not in known}
    unleased = [
        msgspec.structs.replace(job, lease_until=0 if job.state is State.RUNNING else None) for job in fresh.values()
    ]
    return len(unleased) - len(insert(step, unleased))


def _load_schedules(step: Step, schedules: Sequence[Schedule]) -> int:
    ids = [schedule.id for schedule in schedules]
    found = step.schedules.find({"_id": {"$in": ids}}, {"_id": 1}) if ids else ()
    known = {document["_id"] for document in found}
    fresh = {schedule.id: new_schedule_document(schedule) for schedule in schedules if schedule.id not in known}
    if not fresh:
        return 0
    try:
        step.schedules.insert_many(list(fresh.values()))
    except BulkWriteError as err:
        if step.is_atomic or not is_duplicate(err):
            raise
        return len(fresh) - len(err.details["writeErrors"])
    return len(fresh)


def _load_queue(step: Step, queue: QueueRecord, queues: dict[str, QueueInfo]) -> bool:
    here = queues.get(queue.name)
    is_new = queue.is_paused and not (here and here.is_paused)
    if is_new:
        step.meta.update_one(CONTROL, {"$addToSet": {"paused": queue.name}})
    missing = lacking(queue, here.totals if here else {})
    for state, number in missing.items():
        step.counts.add_total(queue.name, state, number)
    return is_new or bool(missing)


def _of(records: Sequence[Record], kind: type[Kind]) -> list[Kind]:
    return [record for record in records if isinstance(record, kind)]
