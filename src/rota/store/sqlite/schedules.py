"""Edits schedules under their version, and reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.settle import cancel
from rota.model.schedules.edit import audit_after, schedule_after
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Due, ScheduleFilter
from rota.store.shared.paging import page_of
from rota.store.shared.sql import schedule_conditions
from rota.store.sqlite import clock
from rota.store.sqlite.codec import (
    FOUND_BY,
    JOB_COLUMNS,
    SCHEDULE_COLUMNS,
    jobs_of,
    last_of,
    row_of_schedule,
    schedule_of,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Page
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.records import Records
    from rota.store.sqlite.transaction import Transaction, Transactions


class Schedules:
    """One namespace's schedules."""

    def __init__(
        self,
        namespace: str,
        transactions: Transactions,
        adder: Adder,
        changer: Changer,
        ledger: Ledger,
        records: Records,
    ) -> None:
        self._transactions = transactions
        self._adder = adder
        self._changer = changer
        self._ledger = ledger
        self._records = records
        self._name = f"{namespace}_schedule"
        self._jobs = f"{namespace}_job"
        columns = f"{SCHEDULE_COLUMNS}, {FOUND_BY}"
        values = ", ".join("?" * len(columns.split(",")))
        self._replace = f"INSERT OR REPLACE INTO {self._name} ({columns}) VALUES ({values})"

    # Editing.

    def edit_schedules(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        with self._transactions.work("edit", now) as tx:
            tx.notify("schedules", "jobs")
            return [edit.id for edit in edits if not self._edit(tx, edit)]

    def _edit(self, tx: Transaction, edit: Edit) -> bool:
        """Apply an edit whole, or not at all if the version has moved on."""
        query = f"SELECT version, created_at, last FROM {self._name} WHERE id = ?"
        current = tx.connection.execute(query, (edit.id,)).fetchone()
        if not edit.holds_for(*(current[:2] if current else (None, None))):
            return False
        if edit.revoke is not None:
            self._revoke(tx, edit, edit.revoke)
        made: list[str] = []
        if edit.is_removal:
            tx.connection.execute(f"DELETE FROM {self._name} WHERE id = ?", (edit.id,))
            self._ledger.forget(tx.connection, edit.id)
        else:
            made = self._add_jobs(tx, edit)
            after = schedule_after(edit, last_of(current[2]) if current else None, made)
            tx.connection.execute(self._replace, row_of_schedule(after))
        audit = audit_after(edit, made)
        self._records.add(tx.connection, [audit] if audit else [])
        self._ledger.erase(tx.connection, edit.id, edit.reopens)
        self._ledger.record(tx.connection, [of_skip(edit.id, skip) for skip in edit.skips])
        return True

    def _add_jobs(self, tx: Transaction, edit: Edit) -> list[str]:
        """The jobs that go with an edit; gives those that were made."""
        query = f"SELECT 1 FROM {self._jobs} WHERE schedule_id = ? AND fire_at = ?"
        fresh = [new for new in edit.jobs if tx.connection.execute(query, (edit.id, new.fire_at)).fetchone() is None]
        return [added.id for added in self._adder.add(tx, fresh) if not added.existed]

    def _revoke(self, tx: Transaction, edit: Edit, reason: str) -> None:
        """Cancel what the schedule's trigger made and nobody has started; runs by hand stay."""
        query = (
            f"SELECT {JOB_COLUMNS} FROM {self._jobs} WHERE schedule_id = ? AND fire_at IS NOT NULL "
            "AND state IN ('scheduled', 'queued', 'held')"
        )
        waiting = jobs_of(tx.connection.execute(query, (edit.id,)))
        self._changer.delete_unstarted(tx, [job for job in waiting if edit.deletes(job)])
        self._changer.apply(tx, [cancel(job, tx.now, reason) for job in waiting if not edit.deletes(job)])

    # Reading.

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        with self._transactions.read() as connection:
            return self.get(connection, ids)

    def get(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[Schedule]:
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {self._name} WHERE id = ?"
        rows = (connection.execute(query, (name,)).fetchone() for name in ids)
        return [schedule_of(row) for row in rows if row is not None]

    def list_schedules(self, where: ScheduleFilter | None, cursor: str | None, limit: int) -> Page[Schedule]:
        clause, values = schedule_conditions(where, cursor)
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {self._name} WHERE {clause} ORDER BY id LIMIT ?"
        with self._transactions.read() as connection:
            rows = connection.execute(query, (*values, limit + 1))
            return page_of([schedule_of(row) for row in rows], limit, lambda schedule: schedule.id)

    def due_schedules(self, limit: int, now: int | None) -> Due:
        """What is due, in order, by the index alone. Rows that cannot be read get their problem recorded."""
        at = clock.at(now)
        with self._transactions.read() as connection:
            rows = connection.execute(
                f"SELECT {SCHEDULE_COLUMNS} FROM {self._name} WHERE due_at <= ? ORDER BY due_at, id LIMIT ?",
                (at, limit),
            ).fetchall()
            following = connection.execute(
                f"SELECT due_at FROM {self._name} WHERE due_at IS NOT NULL ORDER BY due_at, id LIMIT 1 OFFSET ?",
                (len(rows),),
            ).fetchone()
        found = [schedule_of(row) for row in rows]
        broken = [schedule for schedule in found if schedule.problem]
        if broken:
            self._record_problems(broken)
        schedules = [schedule for schedule in found if not schedule.problem]
        return Due(now=at, schedules=schedules, next_due_at=following[0] if following else None)

    def _record_problems(self, broken: Sequence[Schedule]) -> None:
        rows: list[tuple[Any, ...]] = [(schedule.problem, schedule.id, schedule.version) for schedule in broken]
        with self._transactions.write("problem") as tx:
            tx.connection.executemany(
                f"UPDATE {self._name} SET due_at = NULL, problem = ? WHERE id = ? AND version = ?", rows
            )
