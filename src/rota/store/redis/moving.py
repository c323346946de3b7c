"""How this store is sealed, gives out all that it holds, and takes in what another one held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Schedule
from rota.model.state import State
from rota.store.contract import LockRecord, LogLine, Page, QueueRecord, Seal
from rota.store.redis.draft import Draft
from rota.store.redis.logs import log_of, pack_log
from rota.store.redis.packing import jobs_of, line_of, note_mark, pack_entry, pack_last, pack_line
from rota.store.redis.schedules import put_schedule
from rota.store.redis.sheaves import SHEAVES_AT_ONCE, SPAN_BITS
from rota.store.redis.wire import binary
from rota.store.shared.counting import TOTAL, lacking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.store.contract import Part, Record
    from rota.store.redis.desk import Desk
    from rota.store.redis.places import Command
    from rota.store.redis.records import Records
    from rota.store.redis.schedules import ScheduleBook
    from rota.store.redis.upkeep import Housekeeper

STEP = 200  # schedules or jobs looked through at once for what they left


class Mover:
    """The verbs of contract.moving. A cursor says where the last record stood."""

    def __init__(self, desk: Desk, schedules: ScheduleBook, records: Records, housekeeper: Housekeeper) -> None:
        self._desk = desk
        self._records = records
        self._schedules = schedules
        self._housekeeper = housekeeper

    def seal(self, seal: Seal | None) -> None:
        write = (
            ["HDEL", "meta", "seal"] if seal is None else ["HSET", "meta", "seal", msgspec.json.encode(seal).decode()]
        )
        self._desk.write(write, channels=["jobs", "schedules"])

    def sealed(self) -> Seal | None:
        (seal,) = self._desk.ask(["HGET", "meta", "seal"])
        return None if seal is None else msgspec.json.decode(seal, type=Seal)

    # Out.

    def dump(self, part: Part, cursor: str | None, limit: int) -> Page[Record]:
        match part:
            case "jobs":
                return self._jobs(int(cursor or 0), limit)
            case "schedules":
                page = self._schedules.page(None, cursor, limit)
                return Page(list(page.items), page.cursor)
            case "occurrences":
                return _page(self._occurrences(cursor or " ", limit), limit)
            case "logs":
                return _page(self._logs(cursor or "0 0", limit), limit)
            case "queues":
                infos = self._housekeeper.queues()
                return _slice(
                    [QueueRecord(name=i.name, is_paused=i.is_paused, totals=i.totals) for i in infos], cursor, limit
                )
            case "entries":
                return _page(self._entries(cursor, limit), limit)
            case "audit_records":
                notes = self._records.oldest_notes(cursor, limit + 1)
                return _page(((note_mark(note.at, note.id), note) for note in notes), limit)
            case "locks":
                return _slice(self._locks(), cursor, limit)
            case _:
                assert_never(part)

    def _jobs(self, after: int, limit: int) -> Page[Record]:
        found = self._oldest(after, limit + 1)
        shown = found[:limit]
        return Page(list(shown), str(shown[-1].seq) if len(found) > limit else None)

    def _oldest(self, after: int, limit: int) -> list[Job]:
        """Jobs in line behind a place."""
        raw, _ = self._desk.link.call(
            "list",
            sources=[("tasks", "")],
            below=str(2**53),
            least=f"{after + 1}",
            count=limit,
            step=SHEAVES_AT_ONCE,
            span=1 << SPAN_BITS,
            is_rising=True,
        ).body
        return jobs_of(raw)

    def _occurrences(self, cursor: str, limit: int) -> Iterator[tuple[str, Record]]:
        """Lines of ledgers, schedule by schedule, each with its cursor."""
        name, _, through = cursor.partition(" ")
        if name:
            yield from self._lines([name], through, limit)
        while True:
            page = self._schedules.page(None, name or None, STEP)
            yield from self._lines([schedule.id for schedule in page.items], "", limit)
            if page.cursor is None:
                return
            name = page.cursor

    def _lines(self, names: list[str], through: str, limit: int) -> Iterator[tuple[str, Record]]:
        start = f"({through}" if through else "-inf"
        found = self._desk.ask(
            *[["ZRANGEBYSCORE", f"ledger:{name}", start, "+inf", "LIMIT", 0, limit + 1] for name in names]
        )
        for name, rows in zip(names, found, strict=True):
            for line in (line_of(name, row) for row in rows):
                yield f"{name} {line.through_at}", line

    def _logs(self, cursor: str, limit: int) -> Iterator[tuple[str, Record]]:
        """Lines of jobs as these stand in line, each with its cursor: the job's place and the line's number."""
        seq, _, number = cursor.partition(" ")
        place, after = int(seq), int(number)
        if place:
            yield from self._lines_of(self._oldest(place - 1, 1), after, limit)
        while True:
            jobs = self._oldest(place, STEP)
            yield from self._lines_of(jobs, 0, limit)
            if len(jobs) < STEP:
                return
            place = jobs[-1].seq

    def _lines_of(self, jobs: list[Job], after: int, limit: int) -> Iterator[tuple[str, Record]]:
        found = self._desk.ask(
            *[["ZRANGEBYSCORE", f"log:{job.id}", f"({after}", "+inf", "LIMIT", 0, limit + 1] for job in jobs]
        )
        for job, rows in zip(jobs, found, strict=True):
            for line in (log_of(job.id, row) for row in rows):
                yield f"{job.seq} {line.number}", line

    def _entries(self, cursor: str | None, limit: int) -> Iterator[tuple[str, Record]]:
        """Entries kind by kind, each with its cursor: its kind and its name."""
        first, after = msgspec.json.decode(cursor, type=tuple[str, str]) if cursor else ("", "")
        for kind in self._records.kinds():
            if kind >= first:
                for entry in self._records.entries_of(kind, after if kind == first else None, limit + 1):
                    yield msgspec.json.encode((kind, entry.name)).decode(), entry

    def _locks(self) -> list[LockRecord]:
        (rows,) = self._desk.ask(["HGETALL", "lock"])
        numbers = {name.decode(): int(row.split(b"|", 1)[0]) for name, row in zip(rows[::2], rows[1::2], strict=True)}
        return [LockRecord(name=name, number=number) for name, number in sorted(numbers.items())]

    # In.

    def load(self, records: Sequence[Record]) -> int:
        """One draft for all of them: all or none."""
        new = 0

        def turn() -> bool:
            nonlocal new
            jobs = list(dict.fromkeys(record.id for record in records if isinstance(record, Job)))
            at, sights, _, base = self._desk.look(jobs, reserve=len(records))
            draft = Draft(self._desk, at)
            draft.show(sights)
            draft.see(*[command for record in records if (command := _guard_of(record)) is not None])
            taken = _Taken(draft, iter(range(base + 1, base + 1 + len(records))))
            new = sum(taken.take(record) for record in records)
            return self._desk.commit("add", [draft], is_work=False)[0]

        if records:
            self._desk.settle_down(turn)
        return new


def _guard_of(record: Record) -> Command | None:
    """What tells whether a record is there already."""
    match record:
        case Job():
            return None
        case Schedule():
            return ["HGET", "schedule", record.id]
        case Occurrence():
            return ["ZRANGEBYSCORE", f"ledger:{record.schedule_id}", record.through_at, record.through_at]
        case LogLine():
            return ["ZRANGE", f"log:{record.job_id}", -1, -1, "WITHSCORES"]
        case QueueRecord():
            names = [f"{record.name}|{TOTAL}{state}" for state in record.totals]
            return ["HMGET", "count", *names] if names else None
        case Entry():
            return ["HGET", f"entry:{record.kind}", record.name]
        case AuditRecord():
            return ["HGET", "note", record.id]
        case LockRecord():
            return ["HGET", "lock", record.name]
        case _:
            assert_never(record)


class _Taken:
    """Records that are being taken in, upon one draft."""

    def __init__(self, draft: Draft, places: Iterator[int]) -> None:
        self._draft = draft
        self._places = places
        self._known: set[object] = set()  # that came in this load already
        self._numbers: dict[str, int] = {}  # the last line of each job's log, and the last of each lock

    def take(self, record: Record) -> bool:
        """Whether it was new."""
        match record:
            case Job():
                return self._job(record)
            case Schedule():
                return self._schedule(record)
            case Occurrence():
                return self._occurrence(record)
            case LogLine():
                return self._line(record)
            case QueueRecord():
                return self._queue(record)
            case Entry():
                return self._entry(record)
            case AuditRecord():
                return self._note(record)
            case LockRecord():
                return self._lock(record)
            case _:
                assert_never(record)

    def _answer(self, record: Record) -> Any:
        command = _guard_of(record)
        return None if command is None else self._draft.see(command)[0]

    def _is_repeated(self, name: object) -> bool:
        is_known = name in self._known
        self._known.add(name)
        return is_known

    def _job(self, job: Job) -> bool:
        if self._draft.find(job.id) is not None:
            return False
        lease_until = 0 if job.state is State.RUNNING else None  # its worker is on the store that was left
        self._draft.load(msgspec.structs.replace(job, seq=next(self._places), lease_until=lease_until))
        return True

    def _schedule(self, schedule: Schedule) -> bool:
        if self._answer(schedule) is not None or self._is_repeated(("schedule", schedule.id)):
            return False
        put_schedule(self._draft, schedule, None)
        self._draft.note(schedule.id, pack_last(schedule.last))
        return True

    def _occurrence(self, line: Occurrence) -> bool:
        if self._answer(line) or self._is_repeated(("line", line.schedule_id, line.through_at)):
            return False
        self._draft.write("ZADD", f"ledger:{line.schedule_id}", line.through_at, binary(pack_line(line)))
        return True

    def _line(self, line: LogLine) -> bool:
        last = self._numbers.get(f"log:{line.job_id}")
        if last is None:
            found = self._answer(line)
            last = int(float(found[1])) if found else 0
        if line.number <= last:
            return False
        self._numbers[f"log:{line.job_id}"] = line.number
        self._draft.write("ZADD", f"log:{line.job_id}", line.number, binary(b"%d|" % line.number + pack_log(line)))
        return True

    def _queue(self, queue: QueueRecord) -> bool:
        found = self._answer(queue) or []
        totals = {state: int(number or 0) for state, number in zip(queue.totals, found, strict=True)}
        missing = lacking(queue, totals)
        (paused,) = self._draft.see(["HGET", "paused", queue.name])
        is_news = queue.is_paused and paused is None
        if self._is_repeated(("queue", queue.name)) or not (missing or is_news):
            return False
        if is_news:
            self._draft.write("HSET", "paused", queue.name, 1)
        for state, number in missing.items():
            self._draft.write("HINCRBY", "count", f"{queue.name}|{TOTAL}{state}", number)
        return True

    def _entry(self, entry: Entry) -> bool:
        if self._answer(entry) is not None or self._is_repeated(("entry", entry.kind, entry.name)):
            return False
        self._draft.write("HSET", f"entry:{entry.kind}", entry.name, binary(pack_entry(entry)))
        self._draft.write("ZADD", f"entries:{entry.kind}", 0, entry.name)
        self._draft.write("ZADD", "kinds", 0, entry.kind)
        return True

    def _note(self, note: AuditRecord) -> bool:
        if self._answer(note) is not None or self._is_repeated(("note", note.id)):
            return False
        self._draft.keep_note(note)
        return True

    def _lock(self, lock: LockRecord) -> bool:
        found = self._answer(lock)
        number, _, rest = (found or b"0|0|").partition(b"|")
        last = self._numbers.get(f"lock:{lock.name}", int(number))
        if lock.number <= last:
            return False
        self._numbers[f"lock:{lock.name}"] = lock.number
        self._draft.write("HSET", "lock", lock.name, binary(b"%d|" % lock.number + rest))
        return True


def _page(found: Iterator[tuple[str, Record]], limit: int) -> Page[Record]:
    """The first of some records, and where they go on."""
    shown: list[tuple[str, Record]] = []
    for entry in found:
        if len(shown) == limit:
            return Page([record for _, record in shown], shown[-1][0])
        shown.append(entry)
    return Page([record for _, record in shown])


def _slice(records: Sequence[Record], cursor: str | None, limit: int) -> Page[Record]:
    """A page of a part that is always small."""
    start = int(cursor or 0)
    has_more = start + limit < len(records)
    return Page(list(records[start : start + limit]), str(start + limit) if has_more else None)
