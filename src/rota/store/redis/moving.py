"""Seals the store, exports all that it holds, and imports what another store held."""

from __future__ import annotations

from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.jobs.job import Job
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, Seal
from rota.store.redis.codec import (
    binary,
    lock_of,
    log_line_of,
    occurrence_of,
    pack_lock,
    pack_log_line,
    pack_occurrence,
)
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.listing import BEYOND
from rota.store.redis.records import put_entry
from rota.store.redis.schedules import put_schedule
from rota.store.shared.changing import TOTAL, load_queue
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rota.store.contract import Record
    from rota.store.redis.guarded_write import GuardedWriter
    from rota.store.redis.indexes import Command
    from rota.store.redis.listing import Listing
    from rota.store.redis.records import Records
    from rota.store.redis.schedules import Schedules
    from rota.store.shared.parts import OwnPart

    Found = Iterable[tuple[str, Record]]  # records, each with the cursor of what comes after it
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
        match part:
            case "jobs":
                return _page(((str(job.seq), job) for job in self._oldest(after or 0, limit + 1)), limit)
            case "occurrences":
                return _page(self._rows("ledger", self._schedules_after, occurrence_of, after, limit), limit)
            case "logs":
                return _page(self._rows("log", self._jobs_after, log_line_of, after, limit), limit)
            case "entries":
                return _page(self._entries(after or ["", ""], limit), limit)
            case "locks":
                rest = [lock for lock in self._locks() if after is None or lock.name > after]
                return _page(((_cursor(lock.name), lock) for lock in rest), limit)
            case _:
                assert_never(part)

    def _oldest(self, after: int, limit: int) -> list[Job]:
        """The first jobs after a position. One call may read fewer than there are."""
        jobs: list[Job] = []
        is_last = False
        while len(jobs) < limit and not is_last:
            most = limit - len(jobs)
            found, after, is_last = self._listing.read_step(BEYOND, after + 1, most, is_rising=True)
            jobs += found
        return jobs

    def _schedules_after(self, name: Any) -> list[Owner]:
        return [(schedule.id, schedule.id) for schedule in self._schedules.list_schedules(None, name, STEP)]

    def _jobs_after(self, position: Any) -> list[Owner]:
        return [(job.seq, job.id) for job in self._oldest(position or 0, STEP)]

    def _rows(
        self,
        index: str,
        owners: Callable[[Any], list[Owner]],
        record_of: Callable[[str, bytes], Record],
        after: Any,
        limit: int,
    ) -> Found:
        """Records in sorted sets, owner by owner; `owners` reads some after one of them."""
        some, start = ([(after[0], after[1])], f"({after[2]}") if after else (owners(None), "-inf")
        while some:
            page = [start, "+inf", "WITHSCORES", "LIMIT", 0, limit + 1]
            sets = [["ZRANGEBYSCORE", f"{index}:{name}", *page] for _, name in some]
            for owner, rows in zip(some, self._writer.read(*sets), strict=True):
                for row, score in zip(rows[::2], rows[1::2], strict=True):
                    yield _cursor(*owner, int(float(score))), record_of(owner[1], row)
            some, start = owners(some[-1][0]), "-inf"

    def _entries(self, beyond: list[str], limit: int) -> Found:
        """Entries, kind by kind."""
        first, after = beyond
        for kind in self._records.kinds():
            if kind >= first:
                for entry in self._records.entries_after(kind, after if kind == first else None, limit + 1):
                    yield _cursor(kind, entry.name), entry

    def _locks(self) -> list[LockRecord]:
        (rows,) = self._writer.read(["HGETALL", "lock"])
        numbers = {name.decode(): lock_of(row).number for name, row in zip(rows[::2], rows[1::2], strict=True)}
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


def _cursor(*parts: str | int) -> str:
    return msgspec.json.encode(parts[0] if len(parts) == 1 else parts).decode()


def _page(found: Found, limit: int) -> Page[Record]:
    """The first of some records, and the cursor of the next page."""
    page = page_of(list(islice(found, limit + 1)), limit, itemgetter(0))
    return Page([record for _, record in page.items], page.cursor)
