"""The schedule table: reading, and edits that are guarded by the schedule's version inside one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.edit import audit_after, schedule_after
from rota.model.occurrence import of_skip
from rota.model.settle import cancel
from rota.store.contract import Due
from rota.store.shared.paging import page_of
from rota.store.sqlite.rows import FOUND_BY, SCHEDULE_COLUMNS, last_of, row_of_schedule, schedule_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from rota.model.edit import Edit
    from rota.model.schedule import Schedule
    from rota.store.contract import Page, ScheduleFilter
    from rota.store.shared.counting import Counts
    from rota.store.sqlite.jobs import JobTable
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.records import AuditTable


class ScheduleTable:
    """One namespace's schedules."""

    def __init__(self, namespace: str, jobs: JobTable, ledger: Ledger, audit_records: AuditTable) -> None:
        self._name = f"{namespace}_schedule"
        self._jobs = jobs
        self._ledger = ledger
        self._audit = audit_records
        columns = f"{SCHEDULE_COLUMNS}, {FOUND_BY}"
        marks = ", ".join("?" * len(columns.split(",")))
        self._replace = f"INSERT OR REPLACE INTO {self._name} ({columns}) VALUES ({marks})"

    def edit(self, connection: sqlite3.Connection, edit: Edit, now: int, counts: Counts) -> bool:
        """Apply an edit whole, or not at all where the version has moved on."""
        current = self._guard(connection, edit.id)
        if not edit.holds_for(*(current[:2] if current else (None, None))):
            return False
        if edit.revoke is not None:
            self._revoke(connection, edit, edit.revoke, now, counts)
        made: list[str] = []
        if edit.is_removal:
            connection.execute(f"DELETE FROM {self._name} WHERE id = ?", (edit.id,))
            self._ledger.forget(connection, edit.id)
        else:
            made = self._add_jobs(connection, edit, now, counts)
            self._put(connection, schedule_after(edit, last_of(current[2]) if current else None, made))
        audit = audit_after(edit, made)
        self._audit.add(connection, [audit] if audit else [])
        self._ledger.erase(connection, edit.id, edit.reopens)
        self._ledger.record(connection, [of_skip(edit.id, skip) for skip in edit.skips])
        return True

    def _add_jobs(self, connection: sqlite3.Connection, edit: Edit, now: int, counts: Counts) -> list[str]:
        """The jobs that go with an edit; gives those that were made."""
        fresh = [new for new in edit.jobs if not self._jobs.has_occurrence(connection, edit.id, new.fire_at)]
        return [added.id for added in self._jobs.add(connection, fresh, now, counts) if not added.existed]

    def _revoke(self, connection: sqlite3.Connection, edit: Edit, reason: str, now: int, counts: Counts) -> None:
        waiting = self._jobs.waiting_of(connection, edit.id)
        self._jobs.unmake(connection, [job for job in waiting if edit.unmakes(job)], now, counts)
        cancels = [cancel(job, now, reason) for job in waiting if not edit.unmakes(job)]
        self._jobs.apply(connection, cancels, now, counts)

    def get(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[Schedule]:
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {self._name} WHERE id = ?"
        rows = (connection.execute(query, (name,)).fetchone() for name in ids)
        return [schedule_of(row) for row in rows if row is not None]

    def page(
        self, connection: sqlite3.Connection, where: ScheduleFilter, cursor: str | None, limit: int
    ) -> Page[Schedule]:
        wanted = {"tenant": where.tenant, "origin_name": where.origin}
        conditions = {column: value for column, value in wanted.items() if value is not None}
        clause = " AND ".join(f"{column} = ?" for column in conditions) or "TRUE"
        query = f"SELECT {SCHEDULE_COLUMNS} FROM {self._name} WHERE {clause} AND id > ? ORDER BY id LIMIT ?"
        rows = connection.execute(query, (*conditions.values(), cursor or "", limit + 1))
        found = [schedule_of(row) for row in rows]
        return page_of(found, limit, lambda schedule: schedule.id)

    def due(self, connection: sqlite3.Connection, limit: int, now: int) -> tuple[Due, list[tuple[str, str]]]:
        """What is due, in order, by the index alone; and the rows that cannot be read, with the reason."""
        rows = connection.execute(
            f"SELECT {SCHEDULE_COLUMNS} FROM {self._name} WHERE due_at <= ? ORDER BY due_at, id LIMIT ?", (now, limit)
        ).fetchall()
        following = connection.execute(
            f"SELECT due_at FROM {self._name} WHERE due_at IS NOT NULL ORDER BY due_at, id LIMIT 1 OFFSET ?",
            (len(rows),),
        ).fetchone()
        schedules, broken = _readable(rows)
        return Due(now=now, schedules=schedules, next_due_at=following[0] if following else None), broken

    def set_aside(self, connection: sqlite3.Connection, broken: Iterable[tuple[str, str]]) -> None:
        """Keep rows that cannot be read, with the reason, out of the schedulers' way."""
        connection.executemany(
            f"UPDATE {self._name} SET due_at = NULL, problem = ? WHERE id = ?",
            [(problem, schedule_id) for schedule_id, problem in broken],
        )

    def _guard(self, connection: sqlite3.Connection, schedule_id: str) -> tuple[Any, ...] | None:
        query = f"SELECT version, created_at, last FROM {self._name} WHERE id = ?"
        row: tuple[Any, ...] | None = connection.execute(query, (schedule_id,)).fetchone()
        return row

    def _put(self, connection: sqlite3.Connection, schedule: Schedule) -> None:
        connection.execute(self._replace, row_of_schedule(schedule))


def _readable(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Schedule], list[tuple[str, str]]]:
    schedules = [schedule_of(row) for row in rows]
    broken = [(schedule.id, schedule.problem) for schedule in schedules if schedule.problem]
    return [schedule for schedule in schedules if not schedule.problem], broken
