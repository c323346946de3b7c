"""Seals the store, exports all that it holds, and imports what another store held."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.model.state import State
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, Seal
from rota.store.redis.codec import (
    audit_key,
    binary,
    log_line_of,
    occurrence_of,
    pack_entry,
    pack_last,
    pack_log_line,
    pack_occurrence,
)
from rota.store.redis.guarded_write import GuardedWrite
from rota.store.redis.listing import ALL_JOBS, BEYOND
from rota.store.redis.schedules import put_schedule
from rota.store.shared.counting import TOTAL, lacking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rota.store.contract import Part, Record
    from rota.store.redis.guarded_writer import GuardedWriter
    from rota.store.redis.indexes import Command
    from rota.store.redis.listing import Listing
    from rota.store.redis.operations import Operations
    from rota.store.redis.records import Records
    from rota.store.redis.schedules import Schedules

    Found = Iterable[tuple[str, Record]]  # records, each with the cursor of what comes after it

STEP = 200  # schedules or jobs whose ledgers or logs are read in one call


class Moving:
    """The verbs of contract.moving."""

    def __init__(
        self, writer: GuardedWriter, listing: Listing, schedules: Schedules, records: Records, operations: Operations
    ) -> None:
        self._writer = writer
        self._listing = listing
        self._schedules = schedules
        self._records = records
        self._operations = operations

    def seal(self, seal: Seal | None) -> None:
        value = msgspec.json.encode(seal).decode()
        command = ["HDEL", "meta", "seal"] if seal is None else ["HSET", "meta", "seal", value]
        self._writer.write(command, channels=["jobs", "schedules"])

    def sealed(self) -> Seal | None:
        (seal,) = self._writer.read(["HGET", "meta", "seal"])
        return None if seal is None else msgspec.json.decode(seal, type=Seal)

    # Export.

    def dump(self, part: Part, cursor: str | None, limit: int) -> Page[Record]:
        match part:
            case "jobs":
                return _page(((str(job.seq), job) for job in self._oldest(int(cursor or 0), limit + 1)), limit)
            case "schedules":
                page = self._schedules.list_schedules(None, cursor, limit)
                return Page(list(page.items), page.cursor)
            case "occurrences":
                return _page(self._occurrences(cursor or " ", limit), limit)
            case "logs":
                return _page(self._logs(cursor or "0 0", limit), limit)
            case "queues":
                infos = [info for info in self._operations.list_queues() if cursor is None or info.name > cursor]
                records = (QueueRecord(name=i.name, is_paused=i.is_paused, totals=i.totals) for i in infos)
                return _page(((record.name, record) for record in records), limit)
            case "entries":
                return _page(self._entries(cursor, limit), limit)
            case "audit_records":
                audits = self._records.oldest_audit_records(cursor, limit + 1)
                return _page(((audit_key(audit.at, audit.id), audit) for audit in audits), limit)
            case "locks":
                return _page(
                    ((lock.name, lock) for lock in self._locks() if cursor is None or lock.name > cursor), limit
                )
            case _:
                assert_never(part)

    def _oldest(self, after: int, limit: int) -> list[Job]:
        """The first jobs after a position."""
        return self._listing.read_step(ALL_JOBS, BEYOND, after + 1, limit, is_rising=True)[0]

    def _occurrences(self, cursor: str, limit: int) -> Found:
        """Entries of ledgers, schedule by schedule."""
        name, _, through = cursor.partition(" ")
        if name:
            yield from self._entries_of([name], f"({through}", limit)
        while True:
            page = self._schedules.list_schedules(None, name or None, STEP)
            yield from self._entries_of([schedule.id for schedule in page.items], "-inf", limit)
            if page.cursor is None:
                return
            name = page.cursor

    def _entries_of(self, names: list[str], start: str, limit: int) -> Found:
        ledgers = [["ZRANGEBYSCORE", f"ledger:{name}", start, "+inf", "LIMIT", 0, limit + 1] for name in names]
        for name, rows in zip(names, self._writer.read(*ledgers), strict=True):
            for entry in (occurrence_of(name, row) for row in rows):
                yield f"{name} {entry.through_at}", entry

    def _logs(self, cursor: str, limit: int) -> Found:
        """Log lines, job by job."""
        position, number = map(int, cursor.split(" "))
        if position:
            yield from self._lines_of(self._oldest(position - 1, 1), number, limit)
        while True:
            jobs = self._oldest(position, STEP)
            yield from self._lines_of(jobs, 0, limit)
            if len(jobs) < STEP:
                return
            position = jobs[-1].seq

    def _lines_of(self, jobs: list[Job], after: int, limit: int) -> Found:
        logs = [["ZRANGEBYSCORE", f"log:{job.id}", f"({after}", "+inf", "LIMIT", 0, limit + 1] for job in jobs]
        for job, rows in zip(jobs, self._writer.read(*logs), strict=True):
            for line in (log_line_of(job.id, row) for row in rows):
                yield f"{job.seq} {line.number}", line

    def _entries(self, cursor: str | None, limit: int) -> Found:
        """Entries, kind by kind."""
        first, after = msgspec.json.decode(cursor, type=tuple[str, str]) if cursor else ("", "")
        for kind in self._records.kinds():
            if kind >= first:
                for entry in self._records.entries_after(kind, after if kind == first else None, limit + 1):
                    yield msgspec.json.encode((kind, entry.name)).decode(), entry

    def _locks(self) -> list[LockRecord]:
        (rows,) = self._writer.read(["HGETALL", "lock"])
        numbers = {name.decode(): int(row.split(b"|", 1)[0]) for name, row in zip(rows[::2], rows[1::2], strict=True)}
        return [LockRecord(name=name, number=number) for name, number in sorted(numbers.items())]

    # Import.

    def load(self, records: Sequence[Record]) -> int:
        """All or none, in one write; returns how many were new."""
        new = 0

        def step() -> bool:
            nonlocal new
            jobs = list(dict.fromkeys(record.id for record in records if isinstance(record, Job)))
            found = self._writer.snapshot(jobs, reserve=len(records))
            write = GuardedWrite(self._writer, found.now)
            write.add_snapshots(found.jobs)
            write.read(*[_identity(record) for record in records if not isinstance(record, Job)])
            importing = _Import(write, found.positions)
            new = sum(importing.take(record) for record in records)
            return self._writer.commit("add", [write], is_work=False)[0]

        if records:
            self._writer.retry(step)
        return new


def _identity(record: Record) -> Command:
    """The command whose answer says whether a record exists already."""
    match record:
        case Job():
            return ["HGET", "job", record.id]
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


class _Import:
    """Records that are imported in one write."""

    def __init__(self, write: GuardedWrite, positions: Iterator[int]) -> None:
        self._write = write
        self._positions = positions
        self._known: set[str] = set()  # records of this import
        self._numbers: dict[str, int] = {}  # the last number of each log and each lock

    def take(self, record: Record) -> bool:
        """Whether it was new."""
        match record:
            case Job():
                return self._take_job(record)
            case LogLine():
                return self._take_log_line(record)
            case QueueRecord():
                return self._take_queue(record)
            case LockRecord():
                return self._take_lock(record)
        command = _identity(record)
        is_new = not self._write.read(command)[0] and repr(command) not in self._known
        self._known.add(repr(command))
        if is_new:
            self._put(record)
        return is_new

    def _put(self, record: Schedule | Occurrence | Entry | AuditRecord) -> None:
        write = self._write
        match record:
            case Schedule():
                put_schedule(write, record, None)
                write.set_last_run(record.id, pack_last(record.last))
            case Occurrence():
                ledger = f"ledger:{record.schedule_id}"
                write.add_command("ZADD", ledger, record.through_at, binary(pack_occurrence(record)))
            case Entry():
                write.add_command("HSET", f"entry:{record.kind}", record.name, binary(pack_entry(record)))
                write.add_command("ZADD", f"entries:{record.kind}", 0, record.name)
                write.add_command("ZADD", "kinds", 0, record.kind)
            case AuditRecord():
                write.add_audit_record(record)

    def _take_job(self, job: Job) -> bool:
        if self._write.find(job.id) is not None:
            return False
        lease_until = 0 if job.state is State.RUNNING else None  # its worker is on the other store
        self._write.import_job(msgspec.structs.replace(job, seq=next(self._positions), lease_until=lease_until))
        return True

    def _take_log_line(self, line: LogLine) -> bool:
        log = f"log:{line.job_id}"
        (found,) = self._write.read(_identity(line))
        if line.number <= self._numbers.get(log, int(float(found[1])) if found else 0):
            return False
        self._numbers[log] = line.number
        self._write.add_command("ZADD", log, line.number, binary(b"%d|" % line.number + pack_log_line(line)))
        return True

    def _take_queue(self, queue: QueueRecord) -> bool:
        found, paused = self._write.read(_identity(queue), ["HGET", "paused", queue.name])
        totals = {state: int(number or 0) for state, number in zip(queue.totals, found[1:], strict=True)}
        missing = lacking(queue, totals)
        is_paused_now = queue.is_paused and paused is None
        if queue.name in self._known or not (missing or is_paused_now):
            return False
        self._known.add(queue.name)
        if is_paused_now:
            self._write.add_command("HSET", "paused", queue.name, 1)
        for state, number in missing.items():
            self._write.add_command("HINCRBY", "count", f"{queue.name}|{TOTAL}{state}", number)
        return True

    def _take_lock(self, lock: LockRecord) -> bool:
        (found,) = self._write.read(_identity(lock))
        number, _, rest = (found or b"0|0|").partition(b"|")
        if lock.number <= self._numbers.get(lock.name, int(number)):
            return False
        self._numbers[lock.name] = lock.number
        self._write.add_command("HSET", "lock", lock.name, binary(b"%d|" % lock.number + rest))
        return True


def _page(found: Found, limit: int) -> Page[Record]:
    """The first of some records, and the cursor of the next page."""
    shown: list[tuple[str, Record]] = []
    for entry in found:
        if len(shown) == limit:
            return Page([record for _, record in shown], shown[-1][0])
        shown.append(entry)
    return Page([record for _, record in shown])
