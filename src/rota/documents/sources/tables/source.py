"""Makes an SQL table a source: every verb is one transaction that locks its rows, decides in Python, and writes.

The transaction's row locks last for milliseconds. The lock that a handler runs under is a time in the row, so that it
survives the connection and can be seen.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from rota.documents.contract import (
    Batch,
    DocumentFacts,
    Finding,
    Listed,
    LockedDocument,
    SideRecord,
    Source,
    Terms,
    Update,
    Verdict,
    Written,
    document_facts,
    listed,
    texts_meant,
)
from rota.documents.sources.tables.checks import Checks
from rota.documents.sources.tables.dialect import Row
from rota.documents.sources.tables.queries import Queries
from rota.documents.sources.tables.side_table import Kept, SideTable
from rota.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.documents.fields import Fields
    from rota.documents.sources.tables.condition import Condition
    from rota.documents.sources.tables.dialect import Database, Dialect, Session
    from rota.documents.sources.tables.queries import Found

Sides = dict[tuple[str, int], Kept]
Locked = LockedDocument[Row]

APPLIED: Written[Row] = Written(verdict=Verdict.APPLIED)
LOST: Written[Row] = Written(verdict=Verdict.LOST)
DELETE_OLD_EVERY = 24 * 3600.0  # seconds between two looks for side records of documents that are gone
PAGE = 500  # rows that are read at once while those of a state are searched


class TableSource(Source[Row]):
    """Rows that carry a schedule. What differs between databases is in its dialect."""

    def __init__(self, database: Database, dialect: Dialect, *, fields: Fields, key: str, condition: Condition) -> None:
        self.name = dialect.name
        self._database = database
        self._dialect = dialect
        self._fields = fields
        self._queries = Queries(dialect, fields, key, condition)
        self._sides = SideTable(dialect)
        self._locks = count(1)
        self._process = uuid4().hex[:12]
        self._was_busy = False  # the last call locked something, so the next one probably will
        self._is_ready = False
        self._getting_ready = threading.Lock()
        self._deletes_old_at = 0.0

    def now(self) -> int:
        return self._database.now()

    def close(self) -> None:
        self._database.close()

    # Locks.

    def lock_next(self, limit: int, lock_for: int, horizon: int) -> Batch[Row]:
        self._get_ready()
        if not self._was_busy:
            now = self.now()
            at = self._next_time(now, now + horizon)
            if at is None or at > now:
                self._delete_old()
                return Batch(now=now, documents=[], next_due=at)
        batch = self._lock_batch(limit, lock_for)
        was_busy, self._was_busy = self._was_busy, bool(batch.documents)
        if batch.documents or not was_busy:
            return batch
        return replace(batch, next_due=self._next_time(batch.now, batch.now + horizon))

    def _lock_batch(self, limit: int, lock_for: int) -> Batch[Row]:
        tried: list[Any] = []
        try:
            with self._database.write() as session:
                now = session.now
                locked = self._lock_due(session, limit, lock_for, tried)
        except StoreUnavailable:
            raise
        except StoreError as err:
            if len(tried) > 1:
                return self._lock_one_by_one(len(tried), lock_for)
            if not tried:
                raise
            self._queries.refused.add(tried[0])
            raise StoreError(f"{self.name} does not let {tried[0]!r} be locked: {err}") from err
        return Batch(now=now, documents=locked, next_due=None if locked else now)  # others have locked what is due

    def _lock_one_by_one(self, number: int, lock_for: int) -> Batch[Row]:
        """Lock the documents of a refused batch one by one, without those that are refused alone."""
        locked: list[Locked] = []
        refused: list[StoreError] = []
        for _ in range(number):
            try:
                batch = self._lock_batch(1, lock_for)
            except StoreUnavailable:
                break
            except StoreError as err:
                refused.append(err)
            else:
                locked += batch.documents
        if not locked and refused:
            raise refused[-1]
        now = self.now()
        return Batch(now=now, documents=locked, next_due=None if locked else now, refused=tuple(refused))

    def _next_time(self, now: int, until: int) -> int | None:
        """The time of the oldest document that is free, if it is not later than `until`."""
        with self._database.read() as session:
            found = self._queries.times(session, now, until)
        times = [self._dialect.micros(self._fields.sleep_until, value) for value in found]
        return next((at for at in times if at is not None), None)

    def _lock_due(self, session: Session, limit: int, lock_for: int, tried: list[Any]) -> list[Locked]:
        """Lock what is due; `tried` gets the ids before anything is written."""
        due = [
            (row, at)
            for row in self._queries.due(session, session.now, limit)
            if (at := self._sleep_until(row)) is not None and at <= session.now
        ]
        if not due:
            return []
        tried += [row.id for row, _ in due]
        sides = self._sides.find(session, [row.id_text for row, _ in due])
        token = f"{socket.gethostname()}:{os.getpid()}:{self._process}:{next(self._locks)}"
        until = session.now + lock_for
        locked = [self._locked(row, at, sides.get((row.id_text, at)), until, token) for row, at in due]
        self._write_locks(session, [(row, one) for (row, _), one in zip(due, locked, strict=True)])
        return locked

    def _locked(self, row: Found, at: int, kept: Kept | None, until: int, token: str) -> Locked:
        return LockedDocument(
            id=row.id,
            document=row.document,
            terms=self._terms(row, at),
            side=kept.side if kept else SideRecord(nominal=at),
            locked_until=self._lock_time(row, until),
            token=token,
        )

    def _lock_time(self, row: Found, until: int) -> int:
        path = self._fields.locked_until or self._fields.sleep_until
        return self._dialect.stored(path, until, self._like(row, path))

    def _write_locks(self, session: Session, locks: list[tuple[Found, Locked]]) -> None:
        """Write locks or their renewals; with four fields, the side record has the nominal time and the token."""
        fields = self._fields
        if fields.locked_until is not None and fields.locked_by is not None:
            changes = [
                (
                    one.id,
                    {
                        fields.locked_until: self._time(row, fields.locked_until, one.locked_until),
                        fields.locked_by: one.token,
                    },
                )
                for row, one in locks
            ]
        else:
            changes = [
                (one.id, {fields.sleep_until: self._time(row, fields.sleep_until, one.locked_until)})
                for row, one in locks
            ]
            self._sides.replace(
                session,
                [row.id_text for row, _ in locks],
                [Kept(row.id_text, one.locked_until, one.side, one.token) for row, one in locks],
            )
        self._queries.set_fields(session, changes)

    def renew(self, locked: Sequence[Locked], lock_for: int) -> list[Locked | None]:
        if not locked:
            return []
        self._get_ready()
        with self._database.write() as session:
            rows = self._rows(session, locked)
            held = [
                (row, replace(one, locked_until=self._lock_time(row, session.now + lock_for)))
                if row is not None and self._holds(row, one, rows.sides)
                else None
                for row, one in zip(rows.found, locked, strict=True)
            ]
            self._write_locks(session, [one for one in held if one is not None])
        return [None if one is None else one[1] for one in held]

    # Ends.

    def update(self, updates: Sequence[Update[Row]]) -> list[Written[Row]]:
        return self._write([one.locked for one in updates], updates) if updates else []

    def remove(self, locked: Sequence[Locked]) -> list[Written[Row]]:
        return self._write(locked, [None] * len(locked)) if locked else []

    def _write(self, locked: Sequence[Locked], updates: Sequence[Update[Row] | None]) -> list[Written[Row]]:
        """Write fenced updates, and removals where there is none."""
        self._get_ready()
        with self._database.write() as session:
            rows = self._rows(session, locked)
            replies = [self._judge(row, one, rows.sides) for row, one in zip(rows.found, locked, strict=True)]
            applied = [
                (row, one, update)
                for row, one, update, reply in zip(rows.found, locked, updates, replies, strict=True)
                if row is not None and reply is APPLIED
            ]
            self._apply(session, applied)
        return replies

    def _judge(self, row: Found | None, locked: Locked, sides: Sides) -> Written[Row]:
        if row is None or not self._holds(row, locked, sides):
            return LOST
        at = self._sleep_until(row) if self._fields.has_lock else locked.terms.sleep_until
        fresh = replace(locked, document=row.document, terms=self._terms(row, at))
        return APPLIED if fresh.terms == locked.terms else Written(verdict=Verdict.CHANGED, fresh=fresh)

    def _holds(self, row: Found, locked: Locked, sides: Sides) -> bool:
        if row.is_blocked:
            return False
        if self._fields.locked_by is not None:
            return bool(row.values[self._fields.locked_by] == locked.token)
        kept = sides.get((row.id_text, self._sleep_until(row) or 0))
        return kept is not None and kept.token == locked.token

    def _apply(self, session: Session, applied: list[tuple[Found, Locked, Update[Row] | None]]) -> None:
        path = self._fields.sleep_until
        changes: list[tuple[Any, dict[str, Any]]] = []
        records: list[Kept] = []
        for row, locked, update in applied:
            if update is None or update.keeps_schedule:
                continue
            new = update.sleep_until
            at = None if new is None else self._dialect.stored(path, new, self._like(row, path))
            changes.append((locked.id, {path: None if at is None else self._time(row, path, at)}))
            if at is not None and update.side is not None:
                records.append(Kept(row.id_text, at, update.side))
        kept_schedules: list[tuple[Any, dict[str, Any]]] = [
            (locked.id, {}) for _, locked, update in applied if update is not None and update.keeps_schedule
        ]
        removed = [locked.id for _, locked, update in applied if update is None]
        self._queries.set_fields(session, changes, frees=True)
        self._queries.set_fields(session, kept_schedules, frees=True)
        self._queries.delete(session, removed)
        may_have_side = [row.id_text for row, locked, _ in applied if not self._fields.has_lock or _had_side(locked)]
        self._sides.replace(session, may_have_side, records)

    def _rows(self, session: Session, locked: Sequence[Locked]) -> Rows:
        """The documents as they are now, and with four fields the locks' side records."""
        found = self._queries.by_ids(session, [one.id for one in locked])
        chosen = [next((row for row in found if _is_same(row.id, one.id)), None) for one in locked]
        sides = {} if self._fields.has_lock else self._sides.find(session, [row.id_text for row in found])
        return Rows(chosen, sides)

    # Reading rows.

    def _sleep_until(self, row: Found) -> int | None:
        path = self._fields.sleep_until
        return self._dialect.micros(path, row.values[path])

    def _terms(self, row: Found, at: int | None) -> Terms:
        fields, values = self._fields, row.values
        end = values[fields.repeat_until]
        return Terms(
            sleep_until=at,
            interval=None if values[fields.interval] in (None, "") else values[fields.interval],
            repeat_until=None if end in (None, "") else self._dialect.instant(fields.repeat_until, end),
            auto_remove=values[fields.auto_remove] or None,
        )

    def _time(self, row: Found, path: str, at: int) -> Any:
        return self._dialect.value(path, at, self._like(row, path))

    def _like(self, row: Found, path: str) -> Any:
        """The time that is in a field, or in `sleepUntil` if there is none."""
        return row.values[path] if row.values[path] is not None else row.values[self._fields.sleep_until]

    # The rest.

    def _get_ready(self) -> None:
        """Once in a process: check that the table can be used, and make the side table if it is missing."""
        if self._is_ready:
            return
        with self._getting_ready:
            with self._database.read() as session:
                faults = self._dialect.faults(session, self._queries.names)
                has_sides = not faults and self._dialect.has_side_table(session)
            if faults:
                raise StoreError(f"{self.name}: {faults[0].message}. {faults[0].command}".strip().rstrip("."))
            if not has_sides:
                with self._database.write() as session:
                    self._dialect.create_side_table(session)
            self._is_ready = True

    def _delete_old(self) -> None:
        if time.monotonic() < self._deletes_old_at:
            return
        self._deletes_old_at = time.monotonic() + DELETE_OLD_EVERY
        with self._database.write() as session:
            self._sides.delete_old(session)

    def check(self) -> list[Finding]:
        with self._database.read() as session:
            return Checks(self._dialect, self._queries).findings(session, self.now())

    def prepare(self) -> list[str]:
        checks = Checks(self._dialect, self._queries)
        made = []
        with self._database.write() as session:
            if not self._dialect.has_side_table(session):
                self._dialect.create_side_table(session)
                made.append(f"created the table {self._dialect.side_table()} for what Rota remembers of documents")
        with self._database.read() as session:
            return made + checks.create_index(session, self.now())

    def search(self, limit: int, state: str | None = None) -> Listed:
        self._get_ready()
        with self._database.read() as session:
            return listed(self._pages(session, limit, state), limit, state)

    def find(self, wanted: Any) -> DocumentFacts | None:
        self._get_ready()
        meant = texts_meant(wanted)
        with self._database.read() as session:
            rows = [row for one in meant for row in self._rows_with(session, one)]
            chosen = next((row for one in meant for row in rows if _is_same(row.id, one)), None)
            chosen = chosen or next((row for row in rows if str(row.id) == str(wanted)), None)
            if chosen is None:
                return None
            return self._facts(chosen, self._sides.find(session, [chosen.id_text]), self.now())

    def _rows_with(self, session: Session, wanted: Any) -> list[Found]:
        try:
            return self._queries.scheduled_with(session, wanted)
        except self._dialect.misfits:  # not a value of the column's type
            return []

    def _pages(self, session: Session, limit: int, state: str | None) -> Iterator[list[DocumentFacts]]:
        """Rows that may be in a state, by a query for it; without one, those with a time, then those that are done."""
        now = self.now()
        for chosen in ("timed", "done") if state is None else (state,):
            size, start = min(limit + 1, PAGE), 0
            while rows := self._queries.in_state(session, chosen, now, size, start):
                sides = self._sides.find(session, [row.id_text for row in rows])
                yield [self._facts(row, sides, now) for row in rows]
                start, size = start + len(rows), PAGE

    def _facts(self, row: Found, sides: Sides, now: int) -> DocumentFacts:
        fields = self._fields
        at = self._sleep_until(row)
        kept = None if at is None else sides.get((row.id_text, at))
        side = kept.side if kept else SideRecord(nominal=at or 0)
        until, by = None, ""
        if fields.locked_until is not None and fields.locked_by is not None:
            until = self._dialect.micros(fields.locked_until, row.values[fields.locked_until])
            by = row.values[fields.locked_by] or ""
        elif kept is not None and kept.token:
            until, by = at, kept.token
        interval = row.values[fields.interval] or None
        return document_facts(row.id, at, side, interval=interval, locked_by=by, locked_until=until, now=now)


class Rows(NamedTuple):
    """The rows of a batch in its order, with None for those that are gone, and their side records."""

    found: list[Found | None]
    sides: Sides


def _had_side(locked: Locked) -> bool:
    return locked.side.failures > 0 or locked.side.nominal != locked.terms.sleep_until


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
