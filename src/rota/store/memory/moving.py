"""Seals the store for a copy, exports its records part by part, and imports those of another store."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import Job
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, Removal
from rota.store.memory.operations import Operations
from rota.store.shared.changing import load_queue
from rota.store.shared.importing import imported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.contract import Part, Record, Seal


Key = TypeVar("Key")
Value = TypeVar("Value")


class Moving(Operations):
    """Copies the store out and in. A cursor is a number of records: a sealed store does not change."""

    def seal(self, seal: Seal | None) -> None:
        with self._lock:
            self._seal = seal
        self._notifier.notify("jobs")
        self._notifier.notify("schedules")

    def sealed(self) -> Seal | None:
        with self._lock:
            return self._seal

    def removal(self) -> Removal:
        return Removal(words="remove nothing: it ends with its process")

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        start = int(cursor or 0)
        with self._lock:
            records = self._all(part)
        more = start + limit < len(records)
        return Page(list(records[start : start + limit]), str(start + limit) if more else None)

    def load(self, records: Sequence[Record]) -> int:
        with self._lock:
            return sum(self._load(record) for record in records)

    def _all(self, part: Part) -> Sequence[Record]:
        match part:
            case "jobs":
                return sorted(self._jobs.values(), key=lambda job: job.seq)
            case "schedules":
                return [self._schedules[name] for name in sorted(self._schedules)]
            case "occurrences":
                return sorted(self._ledger, key=lambda entry: (entry.schedule_id, entry.through_at))
            case "logs":
                return list(self._logs)
            case "queues":
                infos = self.list_queues()
                return [QueueRecord(name=info.name, is_paused=info.is_paused, totals=info.totals) for info in infos]
            case "entries":
                return [self._entries[name] for name in sorted(self._entries)]
            case "audit_records":
                return sorted(self._audit.values(), key=lambda audit: (audit.at, audit.id))
            case "locks":
                return [LockRecord(name=name, number=number) for name, number in self._locks.numbers()]
            case _:
                assert_never(part)

    def _load(self, record: Record) -> bool:
        match record:
            case Job():
                return self._load_job(record)
            case Schedule():
                return _is_new(self._schedules, record.id, record)
            case Occurrence():
                return self._ledger.load(record)
            case LogLine():
                return self._logs.load(record)
            case QueueRecord():
                return self._load_queue(record)
            case Entry():
                return _is_new(self._entries, (record.kind, record.name), record)
            case AuditRecord():
                return _is_new(self._audit, record.id, record)
            case LockRecord():
                return self._locks.load(record.name, record.number)
            case _:
                assert_never(record)

    def _load_job(self, job: Job) -> bool:
        if job.id in self._jobs:
            return False
        self._insert(msgspec.structs.replace(imported(job), seq=self._next_seq()))
        return True

    def _load_queue(self, queue: QueueRecord) -> bool:
        here = self._counts.info(queue.name, is_paused=queue.name in self._paused, oldest_at=None)
        return load_queue(queue, here, self._counts, lambda: self._paused.add(queue.name))


def _is_new(stored: dict[Key, Value], key: Key, record: Value) -> bool:
    """Add a record that does not exist yet; return whether it was new."""
    is_new = key not in stored
    stored.setdefault(key, record)
    return is_new
