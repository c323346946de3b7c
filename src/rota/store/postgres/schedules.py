"""Schedules: edited under their version, found by an index when they are due, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.settle import cancel
from rota.model.schedules.edit import audit_after, schedule_after
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Due, ScheduleFilter
from rota.store.postgres import job_rows
from rota.store.postgres.codec import (
    SCHEDULE_COLUMNS,
    SCHEDULE_TYPES,
    conditions_of,
    last_from,
    schedule_from,
    schedule_row,
)
from rota.store.postgres.transaction import columns_of, insert_statement
from rota.store.shared.batching import FEW_DUE
from rota.store.shared.paging import page_of
from rota.store.shared.sql import schedule_conditions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import LastRun, Schedule
    from rota.store.contract import Page
    from rota.store.postgres.adding import Adder
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.codec import Row
    from rota.store.postgres.connection import Database
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.records import Records
    from rota.store.postgres.transaction import Transaction

Guard = tuple[int, int, "LastRun"]  # version, created_at, last

_UPDATE = (
    f"UPDATE {{ns}}.schedule s SET {', '.join(f'{name} = w.{name}' for name in SCHEDULE_TYPES)} "
    f"FROM unnest({', '.join(f'%s::{kind}[]' for kind in SCHEDULE_TYPES.values())}) AS w ({SCHEDULE_COLUMNS}) "
    "WHERE s.id = w.id"
)
_CREATE = insert_statement("schedule", SCHEDULE_TYPES, "ON CONFLICT (id) DO NOTHING RETURNING id")
_BY_ID = f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE id = ANY(%s)"


class Schedules:
    """One namespace's schedules."""

    def __init__(self, database: Database, adder: Adder, changer: Changer, ledger: Ledger, records: Records) -> None:
        self._database = database
        self._adder = adder
        self._changer = changer
        self._ledger = ledger
        self._records = records

    def edit_schedules(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        """Apply edits, each whole or not at all; returns the ids of those whose version had moved on."""
        if not edits:
            return []
        return self._database.write("edit", lambda tx, at: self._edit(tx, edits, at), now)

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return self._database.call(lambda tx: self.read(tx, ids))

    def list_schedules(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> Page[Schedule]:
        query, values = found_by(where or ScheduleFilter(), cursor, limit + 1)
        found = [schedule_from(row) for row in self._database.call(lambda tx: tx.rows(query, values))]
        return page_of(found, limit, lambda schedule: schedule.id)

    def due_schedules(self, limit: int, now: int | None) -> Due:
        """What is due, in order, and when the next is due. A schedule that cannot be read gets its problem recorded."""
        due, unreadable = self._database.call(lambda tx: _due_of_few(tx, limit, now))
        if now is None:
            self._database.clock.set(due.now)
        if unreadable:
            broken = sorted(unreadable, key=lambda one: one.id)
            rows = [(schedule.problem, schedule.id, schedule.version) for schedule in broken]
            statement = "UPDATE {ns}.schedule SET due_at = NULL, problem = %s WHERE id = %s AND version = %s"
            self._database.transact("", lambda tx: tx.run_many(statement, rows))
        return due

    # In a transaction.

    def read(self, tx: Transaction, ids: Sequence[str]) -> list[Schedule]:
        found = {row[0]: row for row in tx.rows(_BY_ID, (list(ids),))}
        return [schedule_from(found[name]) for name in ids if name in found]

    def take(self, tx: Transaction, ids: Sequence[str]) -> list[Schedule]:
        """Those of the schedules that no other transaction has locked, locked until this one ends."""
        return [schedule_from(row) for row in tx.rows(f"{_BY_ID} ORDER BY id FOR UPDATE SKIP LOCKED", (list(ids),))]

    def guards(self, tx: Transaction, ids: Sequence[str]) -> dict[str, Guard]:
        """What an edit or a firing must have been decided on, locked until the transaction ends."""
        rows = tx.rows(
            "SELECT id, version, created_at, last FROM {ns}.schedule WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
            (sorted(set(ids)),),
        )
        return {name: (version, created_at, last_from(last)) for name, version, created_at, last in rows}

    def update(self, tx: Transaction, schedules: Sequence[Schedule]) -> None:
        if schedules:
            tx.run(_UPDATE, columns_of(map(schedule_row, schedules)))

    def _edit(self, tx: Transaction, edits: Sequence[Edit], now: int) -> list[str]:
        """However many edits there are, the schedules are written by one statement, and so are the audit records."""
        tx.notify("schedules")
        tx.notify("jobs")
        current = self.guards(tx, [edit.id for edit in edits])
        batch = EditBatch(current, _create(tx, [e for e in edits if e.id not in current and e.expect_version == 0]))
        refused = [edit.id for edit in edits if not self._apply(tx, edit, batch, now)]
        self.update(tx, list(batch.after.values()))
        self._records.write(tx, batch.audit)
        return refused

    def _apply(self, tx: Transaction, edit: Edit, batch: EditBatch, now: int) -> bool:
        """Apply one edit; False if it no longer holds."""
        guard = batch.current.get(edit.id)
        if guard is None and edit.expect_version == 0:
            if batch.new.get(edit.id) is not edit and edit.id not in _create(tx, [edit]):
                return False  # another transaction creates it
        elif not edit.holds_for(*(guard[:2] if guard else (None, None))):
            return False
        else:
            self._revoke(tx, edit, now)
        if edit.is_removal:
            batch.drop(edit.id)
            tx.run("DELETE FROM {ns}.schedule WHERE id = %s", (edit.id,))
            self._ledger.forget(tx, edit.id)
        made = self._follow(tx, edit, now)
        if not edit.is_removal:
            batch.put(edit, schedule_after(edit, guard[2] if guard else None, made))
        audit = audit_after(edit, made)
        batch.audit += [audit] if audit else []
        return True

    def _revoke(self, tx: Transaction, edit: Edit, now: int) -> None:
        """Cancel the jobs that wait; those of later occurrences are deleted without a record."""
        if edit.revoke is None:
            return
        waiting = job_rows.waiting_of(tx, edit.id)
        self._changer.delete_unstarted(tx, [job for job in waiting if edit.deletes(job)], now)
        cancels = [(cancel(job, now, edit.revoke), job) for job in waiting if not edit.deletes(job)]
        self._changer.apply(tx, cancels, now)

    def _follow(self, tx: Transaction, edit: Edit, now: int) -> list[str]:
        """Write what goes with an edit; returns the jobs that were created."""
        self._ledger.erase(tx, edit.id, edit.reopens)
        self._ledger.record(tx, [of_skip(edit.id, skip) for skip in edit.skips])
        if not edit.jobs:
            return []
        made = job_rows.made(tx, [(edit.id, job.fire_at) for job in edit.jobs if job.fire_at is not None])
        fresh = [job for job in edit.jobs if (edit.id, job.fire_at) not in made]
        return [added.id for added in self._adder.write(tx, fresh, now) if not added.existed]


class EditBatch:
    """What the edits of a call come to."""

    def __init__(self, current: dict[str, Guard], new: dict[str, Edit]) -> None:
        self.current = current  # the schedules as they are by now
        self.new = new  # the edits that have created their schedule
        self.after: dict[str, Schedule] = {}  # to be written after all edits
        self.audit: list[AuditRecord] = []

    def put(self, edit: Edit, after: Schedule) -> None:
        """What an edit leaves. A schedule that was inserted as it is needs no second write."""
        self.current[edit.id] = (after.version, after.created_at, after.last)
        if edit.expect_version or after != edit.after:
            self.after[edit.id] = after

    def drop(self, schedule_id: str) -> None:
        self.current.pop(schedule_id, None)
        self.after.pop(schedule_id, None)


def _create(tx: Transaction, edits: Sequence[Edit]) -> dict[str, Edit]:
    """Insert new schedules, the first of each name; if another transaction inserts the same, one is refused."""
    first: dict[str, Edit] = {}
    for edit in edits:
        if not edit.is_removal:
            first.setdefault(edit.id, edit)
    rows = [schedule_row(first[name].after) for name in sorted(first)]
    made = {name for (name,) in tx.rows(_CREATE, columns_of(rows))} if rows else set()
    return {name: edit for name, edit in first.items() if name in made}


def _due_of_few(tx: Transaction, limit: int, now: int | None) -> tuple[Due, list[Schedule]]:
    """Few are due as a rule: only if the first few all are, as many as the limit says are read."""
    due, unreadable = _due(tx, min(limit, FEW_DUE), now)
    if limit <= FEW_DUE or len(due.schedules) + len(unreadable) < FEW_DUE:
        return due, unreadable
    return _due(tx, limit, now)


def _due(tx: Transaction, limit: int, now: int | None) -> tuple[Due, list[Schedule]]:
    """The first by the index, due or not: a condition on the time would have the planner scan the table."""
    rows = tx.rows(
        f"SELECT clock.now, s.* FROM (SELECT coalesce(%s::bigint, {{ns}}.micros()) AS now) clock LEFT JOIN LATERAL "
        f"(SELECT due_at AS key, {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE due_at IS NOT NULL "
        "ORDER BY due_at, id LIMIT %s) s ON true",
        (now, limit + 1),
    )
    at = rows[0][0]
    waiting: list[Row] = [row[1:] for row in rows if row[1] is not None]
    is_due = [row for row in waiting[:limit] if row[0] <= at]
    next_due_at = waiting[len(is_due)][0] if len(waiting) > len(is_due) else None
    schedules = [schedule_from(row[1:]) for row in is_due]
    readable = [schedule for schedule in schedules if not schedule.problem]
    return Due(now=at, schedules=readable, next_due_at=next_due_at), [one for one in schedules if one.problem]


def found_by(where: ScheduleFilter, cursor: str | None, limit: int) -> tuple[str, list[Any]]:
    """The query for the schedules that a filter shows, by id; each index has that order."""
    clause, values = conditions_of(schedule_conditions(where, cursor))
    if where.tenant:
        clause += " AND tenant <> ''"  # the condition of the index
    return f"SELECT {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE {clause} ORDER BY id LIMIT %s", [*values, limit]
