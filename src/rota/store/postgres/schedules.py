"""Schedules: edited under their version, found by an index when they are due, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Due
from rota.store.postgres import job_rows
from rota.store.postgres.codec import CODEC
from rota.store.postgres.faults import StaleRead
from rota.store.postgres.transaction import columns_of
from rota.store.shared.batching import FEW_DUE
from rota.store.shared.sql_codec import SCHEDULE_COLUMNS, SCHEDULE_TYPES, schedule_from
from rota.store.shared.sql_schedules import BY_ID, SqlSchedules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Added
    from rota.store.postgres.adding import Adder
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.codec import Row
    from rota.store.postgres.connection import Database
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.records import Records
    from rota.store.postgres.transaction import Transaction

_UPDATE = (
    f"UPDATE {{ns}}.schedule s SET {', '.join(f'{name} = w.{name}' for name in SCHEDULE_TYPES)} "
    f"FROM unnest({', '.join(f'%s::{kind}[]' for kind in SCHEDULE_TYPES.values())}) AS w ({', '.join(SCHEDULE_TYPES)}) "
    "WHERE s.id = w.id"
)


class Schedules(SqlSchedules["Transaction"]):
    """One namespace's schedules."""

    locks = "FOR UPDATE"

    def __init__(self, database: Database, adder: Adder, changer: Changer, ledger: Ledger, records: Records) -> None:
        super().__init__(database.select, CODEC, changer, ledger, records)
        self._database = database
        self._adder = adder

    def edit_schedules(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        """Apply edits, each whole or not at all; returns the ids of those whose version had moved on."""
        if not edits:
            return []

        def edit(tx: Transaction, at: int) -> list[str]:
            tx.notify("schedules")
            tx.notify("jobs")
            return self.edit(tx, edits, at)

        return self._database.write("edit", edit, now)

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

    def take(self, tx: Transaction, ids: Sequence[str]) -> list[Schedule]:
        """Those of the schedules that no other transaction has locked, locked until this one ends."""
        return [schedule_from(row) for row in tx.rows(f"{BY_ID} ORDER BY id FOR UPDATE SKIP LOCKED", (list(ids),))]

    def update(self, tx: Transaction, schedules: Sequence[Schedule]) -> None:
        if schedules:
            tx.run(_UPDATE, columns_of(map(CODEC.schedule_row, schedules)))

    def create(self, tx: Transaction, edits: Iterable[Edit]) -> bool:
        if not super().create(tx, edits):
            raise StaleRead
        return True

    def waiting_of(self, tx: Transaction, schedule_id: str) -> list[Job]:
        return job_rows.waiting_of(tx, schedule_id)

    def made(self, tx: Transaction, occurrences: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        return job_rows.made(tx, occurrences)

    def add(self, tx: Transaction, jobs: Sequence[NewJob], now: int) -> list[Added]:
        return self._adder.write(tx, jobs, now)


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
