"""Moving: parts read by their ids, page by page; records of another store taken as they are."""

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
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, ScheduleFilter
from rota.store.mongo.documents import document_of_last, document_of_schedule
from rota.store.mongo.head import HEAD
from rota.store.mongo.jobs import is_duplicate
from rota.store.shared.counting import lacking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Part, QueueInfo, Record
    from rota.store.mongo.jobs import Jobs
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.lists import Lists
    from rota.store.mongo.locks import Locks
    from rota.store.mongo.logs import Logs
    from rota.store.mongo.records import Entries, Notes
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step, Steps

Kind = TypeVar("Kind")
Keyed = list[tuple[Any, "Record"]]


class Mover:
    """Gives out all of one namespace, and takes in what another store held."""

    def __init__(
        self,
        steps: Steps,
        jobs: Jobs,
        lists: Lists,
        schedules: Schedules,
        ledger: Ledger,
        logs: Logs,
        locks: Locks,
        entries: Entries,
        notes: Notes,
    ) -> None:
        self._steps = steps
        self._jobs = jobs
        self._lists = lists
        self._schedules = schedules
        self._ledger = ledger
        self._logs = logs
        self._locks = locks
        self._entries = entries
        self._notes = notes

    # Out.

    def page(
        self, space: Space, part: Part, cursor: str | None, limit: int, queues: Sequence[QueueInfo]
    ) -> Page[Record]:
        after = msgspec.json.decode(cursor) if cursor else None
        records = self._records(space, part, after, limit + 1, queues)
        shown = records[:limit]
        more = msgspec.json.encode(shown[-1][0]).decode() if len(records) > limit else None
        return Page([record for _, record in shown], more)

    def _records(self, space: Space, part: Part, after: Any, limit: int, queues: Sequence[QueueInfo]) -> Keyed:
        """Records beyond a key, each with its own."""
        match part:
            case "jobs":
                return [(job.seq, job) for job in self._lists.oldest(after or 0, limit)]
            case "schedules":
                page = self._schedules.page(space, ScheduleFilter(), after, limit)
                return [(schedule.id, schedule) for schedule in page.items]
            case "occurrences":
                return self._lines(space, after or ["", 0], limit)
            case "logs":
                return list(self._logs.all(space, after or "", limit))
            case "entries":
                entries = self._entries.all(space, tuple(after) if after else ("", ""), limit)
                return [((entry.kind, entry.name), entry) for entry in entries]
            case "audit_records":
                return [(note.id, note) for note in self._notes.all(space, after or "", limit)]
            case "locks":
                return [(lock.name, lock) for lock in self._locks.all(space, after or "", limit)]
            case "queues":
                rest = [info for info in queues if after is None or info.name > after][:limit]
                return [
                    (info.name, QueueRecord(name=info.name, is_paused=info.is_paused, totals=info.totals))
                    for info in rest
                ]
            case _:
                assert_never(part)

    def _lines(self, space: Space, after: list[Any], limit: int) -> Keyed:
        """A schedule may have many lines, or none that is left to give: read on until there are enough."""
        lines: Keyed = []
        for name, kept in self._ledger.documents(space, after[0], limit + 1):
            lines += [([name, line.through_at], line) for line in kept if name > after[0] or line.through_at > after[1]]
            if len(lines) >= limit:
                break
        return lines[:limit]

    # In.

    def load(self, space: Space, records: Sequence[Record], queues: Sequence[QueueInfo]) -> int:
        """How many were new."""
        jobs = _of(records, Job)

        def work(step: Step) -> int:
            new = self._load_jobs(step, jobs) + self._load_schedules(step, _of(records, Schedule))
            new += self._load_lines(step, _of(records, Occurrence))
            return new + sum(self._load_queue(step, record, queues) for record in _of(records, QueueRecord))

        new = self._steps.run("load", work)
        new += self._entries.load(space, _of(records, Entry)) + self._notes.add(space, _of(records, AuditRecord))
        return new + self._logs.load(space, _of(records, LogLine)) + self._locks.load(space, _of(records, LockRecord))

    def _load_jobs(self, step: Step, jobs: Sequence[Job]) -> int:
        """A running one's lease is void: its worker is on the store that was left."""
        ids = [job.id for job in jobs]
        step.space.jobs.delete_many({"_id": {"$in": ids}, "gone_at": {"$type": "date"}}, session=step.session)
        known = {job.id for job in self._jobs.get(step.space, ids, step.session)}
        fresh = {job.id: job for job in jobs if job.id not in known}
        placed = [
            msgspec.structs.replace(job, lease_until=0 if job.state is State.RUNNING else None)
            for job in fresh.values()
        ]
        return len(placed) - len(self._jobs.insert(step, placed, set()))

    def _load_schedules(self, step: Step, schedules: Sequence[Schedule]) -> int:
        if not schedules:
            return 0
        ids = [schedule.id for schedule in schedules]
        found = step.space.schedules.find({"_id": {"$in": ids}}, {"_id": 1}, session=step.session)
        known = {document["_id"] for document in found}
        fresh = {schedule.id: schedule for schedule in schedules if schedule.id not in known}
        if not fresh:
            return 0
        documents = [_document(schedule) for schedule in fresh.values()]
        try:
            step.space.schedules.insert_many(documents, ordered=False, session=step.session)
        except BulkWriteError as err:
            if step.is_atomic or not is_duplicate(err):
                raise
            return len(documents) - len(err.details["writeErrors"])
        return len(documents)

    def _load_lines(self, step: Step, lines: Sequence[Occurrence]) -> int:
        if not lines:
            return 0
        ids = list({line.schedule_id for line in lines})
        found = step.space.schedules.find({"_id": {"$in": ids}}, {"created_at": 1}, session=step.session)
        return self._ledger.load(step, lines, {document["_id"]: int(document["created_at"]) for document in found})

    def _load_queue(self, step: Step, queue: QueueRecord, queues: Sequence[QueueInfo]) -> bool:
        here = next((info for info in queues if info.name == queue.name), None)
        is_news = queue.is_paused and not (here and here.is_paused)
        if is_news:
            step.space.meta.update_one(HEAD, {"$addToSet": {"paused": queue.name}}, session=step.session)
        missing = lacking(queue, here.totals if here else {})
        for state, number in missing.items():
            step.counts.add_total(queue.name, state, number)
        return is_news or bool(missing)


def _document(schedule: Schedule) -> Document:
    fields = {name: value for name, value in document_of_schedule(schedule).items() if value is not None}
    return {"_id": schedule.id, **fields, "last": document_of_last(schedule.last)}


def _of(records: Sequence[Record], kind: type[Kind]) -> list[Kind]:
    return [record for record in records if isinstance(record, kind)]
