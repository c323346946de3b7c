"""Seals the store, exports all that it holds, and imports what another store held."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import Job
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LockRecord, LogLine, QueueRecord, Seal
from rota.store.redis.codec import (
    binary,
    lock_of,
    log_line_of,
    occurrence_of,
    pack_lock,
    pack_log_line,
    pack_occurrence,
    pairs_of,
)
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.records import put_entry
from rota.store.redis.schedules import put_schedule
from rota.store.shared.changing import TOTAL, load_queue
from rota.store.shared.paging import keyed_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.store.contract import Page, Record
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.indexes import Command
    from rota.store.redis.listing import Listing
    from rota.store.redis.records import Records
    from rota.store.redis.schedules import Schedules
    from rota.store.shared.parts import OwnPart

    Found = Iterable[tuple[object, Record]]  # records, each behind its key
    Stored = Schedule | Occurrence | Entry | AuditRecord | LogLine | QueueRecord | LockRecord
    Owner = tuple[str | int, str]  # of a ledger or a log: its place in the order of owners, and its id

STEP = 200  # schedules or jobs whose ledgers or logs are read in one call


class Moving:
    """The verbs of contract.moving."""

    def __init__(self, writer: GuardedWriter, listing: Listing, schedules: Schedules, records: Records) -> None:
        self._writer = writer
        self._listing = listing
        self._schedules = schedules
        self._records = records

    def seal(self, seal: Seal | None) -> None:
        value = msgspec.json.encode(seal).decode()
        command = ["HDEL", "meta", "seal"] if seal is None else ["HSET", "meta", "seal", value]
        self._writer.write(command, ["NOTIFY", "jobs"], ["NOTIFY", "schedules"])

    def sealed(self) -> Seal | None:
        (seal,) = self._writer.read(["HGET", "meta", "seal"])
        return None if seal is None else msgspec.json.decode(seal, type=Seal)

    # Export.

    def dump(self, part: OwnPart, cursor: str | None, limit: int) -> Page[Record]:
        after = msgspec.json.decode(cursor) if cursor else None
        return keyed_page(self._records_of(part, after, limit + 1), limit)

    def _records_of(self, part: OwnPart, after: Any, step: int) -> Found:
        """The records of a part after a key, read in steps."""
        match part:
            case "jobs":
                return ((job.seq, job) for job in self._listing.oldest_jobs(after or 0, step))
            case "occurrences":
                return self._rows("ledger", self._schedules_after, occurrence_of, after, step)
            case "logs":
                return self._rows("log", self._jobs_after, log_line_of, after, step)
            case "entries":
                return self._entries(after or ["", ""], step)
            case "locks":
                return ((lock.name, lock) for lock in self._locks() if after is None or lock.name > after)
            case _:
                assert_never(part)

    def _schedules_after(self, name: Any) -> list[Owner]:
        return [(schedule.id, schedule.id) for schedule in self._schedules.list_schedules(None, name, STEP)]

    def _jobs_after(self, position: Any) -> list[Owner]:
        return [(job.seq, job.id) for job in islice(self._listing.oldest_jobs(position or 0, STEP), STEP)]

    def _rows(
        self,
        index: str,
        owners: Callable[[Any], list[Owner]],
        record_of: Callable[[str, bytes], Record],
        after: Any,
        step: int,
    ) -> Found:
        """Records in sorted sets, owner by owner; `owners` reads some after one of them."""
        some, start = ([(after[0], after[1])], f"({after[2]}") if after else (owners(None), "-inf")
        while some:
            page = [start, "+inf", "WITHSCORES", "LIMIT", 0, step]
            sets = [["ZRANGEBYSCORE", f"{index}:{name}", *page] for _, name in some]
            for owner, rows in zip(some, self._writer.read(*sets), strict=True):
                for row, score in pairs_of(rows):
                    yield (*owner, int(float(score))), record_of(owner[1], row)
            some, start = owners(some[-1][0]), "-inf"

    def _entries(self, beyond: list[str], step: int) -> Found:
        """Entries, kind by kind."""
        first, after = beyond
        for kind in self._records.kinds():
            if kind >= first:
                for entry in self._records.entries_after(kind, after if kind == first else None, step):
                    yield (kind, entry.name), entry

    def _locks(self) -> list[LockRecord]:
        (rows,) = self._writer.read(["HGETALL", "lock"])
        numbers = {name.decode(): lock_of(row).number for name, row in pairs_of(rows)}
        return [LockRecord(name=name, number=number) for name, number in sorted(numbers.items())]

    # Import.

    def load(self, records: Sequence[Record]) -> int:
        """All or none, in one write; returns how many were new."""

        def decided() -> tuple[GuardedWrite, int]:
            jobs = [record.id for record in records if isinstance(record, Job)]
            others = [_stored(record) for record in records if not isinstance(record, Job)]
            write = GuardedWrite(self._writer, self._writer.snapshot(jobs, *others, reserve=len(jobs)))
            return write, sum(_take(write, record) for record in records)

        return self._writer.decide_one("add", decided, is_work=False) if records else 0


def _stored(record: Stored) -> Command:
    """The command that reads what is stored of a record."""
    match record:
        case Schedule():
            return ["HGET", "schedule", record.id]
        case Occurrence():
            return ["ZRANGEBYSCORE", f"ledger:{record.schedule_id}", record.through_at, record.through_at]
        case LogLine():
            return ["ZRANGE", f"log:{record.job_id}", -1, -1, "WITHSCORES"]
        case QueueRecord():
            return ["HMGET", "count", "", *(f"{record.name}|{TOTAL}{state}" for state in record.totals)]
        case Entry():
            return ["HGET", f"entry:{record.kind}", record.name]
        case AuditRecord():
            return ["HGET", "audit", record.id]
        case LockRecord():
            return ["HGET", "lock", record.name]
        case _:
            assert_never(record)


def _take(write: GuardedWrite, record: Record) -> bool:
    """Write a record that is new; whether it was."""
    found: Any = write.find(record.id) if isinstance(record, Job) else write.read(_stored(record))[0]
    match record:
        case QueueRecord():
            return _take_queue(write, record, found[1:])
        case LogLine() if not found or record.number > int(float(found[1])):
            line = binary(b"%d|" % record.number + pack_log_line(record))
            write.add_command("ZADD", f"log:{record.job_id}", record.number, line)
        case LockRecord() if record.number > (lock := lock_of(found)).number:
            lock = msgspec.structs.replace(lock, number=record.number)
            write.add_command("HSET", "lock", record.name, binary(pack_lock(lock)))
        case _ if found or isinstance(record, LogLine | LockRecord):
            return False
        case Job():
            write.import_job(record)
        case Schedule():
            put_schedule(write, record.id, None, record)
            write.set_last_run(record.id, record.last)
        case Occurrence():
            entry = binary(pack_occurrence(record))
            write.add_command("ZADD", f"ledger:{record.schedule_id}", record.through_at, entry)
        case Entry():
            put_entry(write, record)
        case AuditRecord():
            write.add_audit_record(record)
    return True


def _take_queue(write: GuardedWrite, queue: QueueRecord, numbers: Sequence[bytes | None]) -> bool:
    totals = {state: int(number or 0) for state, number in zip(queue.totals, numbers, strict=True)}
    (paused,) = write.read(["HGET", "paused", queue.name])
    here = QueueRecord(name=queue.name, is_paused=paused is not None, totals=totals)
    return load_queue(queue, here, write.counts, lambda: write.add_command("HSET", "paused", queue.name, 1))
