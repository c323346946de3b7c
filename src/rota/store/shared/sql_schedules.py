"""Schedules of the stores that keep tables: edited under their version, read and listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from rota.model.jobs.settle import cancel
from rota.model.schedules.edit import audit_after, schedule_after
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Due
from rota.store.shared.paging import page_of
from rota.store.shared.sql import Tables, schedule_conditions
from rota.store.shared.sql_codec import SCHEDULE_COLUMNS, SCHEDULE_TYPES, last_from, schedule_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import LastRun, Schedule
    from rota.store.contract import Added, Page, ScheduleFilter
    from rota.store.shared.sql import Row, Select
    from rota.store.shared.sql_changing import SqlChanger
    from rota.store.shared.sql_codec import SqlCodec
    from rota.store.shared.sql_ledger import SqlLedger
    from rota.store.shared.sql_records import SqlRecords

Tx = TypeVar("Tx", bound=Tables)

BY_ID = f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE id = ANY(?)"

RECORD_PROBLEM = "UPDATE {ns}.schedule SET due_at = NULL, problem = ? WHERE id = ? AND version = ?"


class Guard(NamedTuple):
    """What an edit or a firing must have been decided on, and the last run as it is stored."""

    version: int
    created_at: int
    last: LastRun


class EditBatch:
    """What the edits of a call come to."""

    def __init__(self, current: dict[str, Guard], new: dict[str, Edit]) -> None:
        self.current = current  # the schedules as they are by now
        self.new = new  # the edits that have created their schedule
        self.after: dict[str, Schedule] = {}  # to be written after all edits
        self.audit: list[AuditRecord] = []

    def put(self, edit: Edit, after: Schedule) -> None:
        """What an edit leaves. A schedule that was inserted as it is needs no second write."""
        self.current[edit.id] = Guard(after.version, after.created_at, after.last)
        if edit.expect_version or after != edit.after:
            self.after[edit.id] = after

    def drop(self, schedule_id: str) -> None:
        self.current.pop(schedule_id, None)
        self.after.pop(schedule_id, None)


class SqlSchedules(ABC, Generic[Tx]):
    """One namespace's schedules. A store says how it locks and updates them, and what it does with their jobs."""

    def __init__(
        self, select: Select, codec: SqlCodec, changer: SqlChanger[Tx], ledger: SqlLedger, records: SqlRecords
    ) -> None:
        self._select = select
        self._codec = codec
        self._changer = changer
        self._ledger = ledger
        self._records = records

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return _in_order(ids, self._select(BY_ID, (list(ids),)))

    def list_schedules(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> Page[Schedule]:
        found = list(map(schedule_from, self._select(*self.found_by(where, cursor, limit + 1))))
        return page_of(found, limit, lambda schedule: schedule.id)

    def found_by(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> tuple[str, list[Any]]:
        """The query for the schedules that a filter shows, by id; each index has that order."""
        clause, values = schedule_conditions(where, cursor, self._codec.no_tenant)
        if where is not None and where.tenant:
            clause += " AND tenant <> ''"  # the condition of the index
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE {clause} ORDER BY id LIMIT ?"
        return query, [*map(self._codec.text, values), limit]

    def due_from(self, rows: Iterable[Row], now: int, next_due_at: int | None) -> Due:
        """What is due, from the rows in order. A schedule that cannot be read gets its problem recorded."""
        found = list(map(schedule_from, rows))
        broken = sorted((one.id, one.version, one.problem) for one in found if one.problem)
        if broken:
            self.record_problems([(problem, name, version) for name, version, problem in broken])
        return Due(now=now, schedules=[one for one in found if not one.problem], next_due_at=next_due_at)

    # In a transaction.

    def read(self, tx: Tx, ids: Sequence[str]) -> list[Schedule]:
        return _in_order(ids, tx.rows(BY_ID, (list(ids),)))

    def guards(self, tx: Tx, ids: Iterable[str]) -> dict[str, Guard]:
        """Of the schedules that exist, locked until the transaction ends."""
        query = "SELECT id, version, created_at, last FROM {ns}.schedule WHERE id = ANY(?) ORDER BY id"
        rows = tx.rows(f"{query} {self.locks}", (sorted(set(ids)),))
        return {name: Guard(version, created_at, last_from(last)) for name, version, created_at, last in rows}

    def edit(self, tx: Tx, edits: Sequence[Edit], now: int) -> list[str]:
        """Apply edits, each whole or not at all; returns the ids of those whose version had moved on.

        However many edits there are, the schedules are written by one statement, and so are the audit records.
        """
        current = self.guards(tx, [edit.id for edit in edits])
        new = {edit.id: edit for edit in reversed(edits) if edit.id not in current and _creates(edit)}
        self.create(tx, new.values())
        batch = EditBatch(current, new)
        refused = [edit.id for edit in edits if not self._apply(tx, edit, batch, now)]
        self.update(tx, list(batch.after.values()))
        self._records.write(tx, batch.audit)
        return refused

    def _apply(self, tx: Tx, edit: Edit, batch: EditBatch, now: int) -> bool:
        """Apply one edit; False if it no longer holds."""
        guard = batch.current.get(edit.id)
        if guard is None and _creates(edit):
            if batch.new.get(edit.id) is not edit:  # an edit before it has removed the schedule
                self.create(tx, [edit])
        elif guard is None or not edit.holds_for(guard.version, guard.created_at):
            return False
        elif edit.revoke is not None:
            self._revoke(tx, edit, edit.revoke, now)
        if edit.is_removal:
            batch.drop(edit.id)
            tx.run("DELETE FROM {ns}.schedule WHERE id = ?", (edit.id,))
            self._ledger.forget(tx, edit.id)
        made = self._follow(tx, edit, now)
        if not edit.is_removal:
            batch.put(edit, schedule_after(edit, guard.last if guard else None, made))
        audit = audit_after(edit, made)
        batch.audit += [audit] if audit else []
        return True

    def _revoke(self, tx: Tx, edit: Edit, reason: str, now: int) -> None:
        """Cancel the jobs that wait; those of later occurrences are deleted without a record."""
        waiting = self.waiting_of(tx, edit.id)
        self._changer.delete_unstarted(tx, [job for job in waiting if edit.deletes(job)], now)
        self._changer.apply(tx, [(cancel(job, now, reason), job) for job in waiting if not edit.deletes(job)], now)

    def _follow(self, tx: Tx, edit: Edit, now: int) -> list[str]:
        """Write what goes with an edit; returns the jobs that were created."""
        self._ledger.erase(tx, edit.id, edit.reopens)
        self._ledger.record(tx, [of_skip(edit.id, skip) for skip in edit.skips])
        if not edit.jobs:
            return []
        made = self.made(tx, [(edit.id, job.fire_at or 0) for job in edit.jobs])
        fresh = [job for job in edit.jobs if (edit.id, job.fire_at) not in made]
        return [added.id for added in self.add(tx, fresh, now) if not added.existed]

    def create(self, tx: Tx, edits: Iterable[Edit]) -> bool:
        """Insert new schedules; False if another transaction has inserted one meanwhile."""
        rows = sorted(self._codec.schedule_row(edit.after) for edit in edits)
        return tx.insert("schedule", SCHEDULE_TYPES, rows, "ON CONFLICT (id) DO NOTHING") == len(rows)

    # What a store does in its own way.

    locks = ""  # what locks the rows that a query finds

    @abstractmethod
    def record_problems(self, rows: Sequence[Row]) -> None:
        """Run RECORD_PROBLEM for each."""

    @abstractmethod
    def update(self, tx: Tx, schedules: Sequence[Schedule]) -> None: ...

    @abstractmethod
    def waiting_of(self, tx: Tx, schedule_id: str) -> list[Job]:
        """The jobs that the trigger created and no worker has started, locked until the transaction ends."""

    @abstractmethod
    def made(self, tx: Tx, occurrences: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of the occurrences (schedule and time) that have a job."""

    @abstractmethod
    def add(self, tx: Tx, jobs: Sequence[NewJob], now: int) -> list[Added]: ...


def _creates(edit: Edit) -> bool:
    return edit.expect_version == 0 and not edit.is_removal


def _in_order(ids: Sequence[str], rows: Iterable[Row]) -> list[Schedule]:
    found = {row[0]: row for row in rows}
    return [schedule_from(found[name]) for name in ids if name in found]
