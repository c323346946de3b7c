"""Edits schedules under their version, finds due ones by an index, and lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.postgres import job_rows
from rota.store.postgres.codec import CODEC
from rota.store.postgres.faults import StaleRead
from rota.store.postgres.transaction import columns_of
from rota.store.shared.batching import FEW_DUE
from rota.store.shared.sql_codec import SCHEDULE_COLUMNS, SCHEDULE_TYPES, schedule_from
from rota.store.shared.sql_schedules import BY_ID, RECORD_PROBLEM, SqlSchedules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Added, Due
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

# A condition on the time would have the planner scan the table.
_FIRST_DUE = (
    "SELECT clock.now, s.* FROM (SELECT coalesce(%s::bigint, {ns}.micros()) AS now) clock LEFT JOIN LATERAL "
    f"(SELECT due_at AS key, {SCHEDULE_COLUMNS} FROM {{ns}}.schedule WHERE due_at IS NOT NULL "
    "ORDER BY due_at, id LIMIT %s) s ON true"
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
        """By the index: the first schedules, due or not."""
        for most in (FEW_DUE, limit) if limit > FEW_DUE else (limit,):  # few are due as a rule
            rows = self._database.select(_FIRST_DUE, (now, most + 1))
            at, waiting = rows[0][0], [row[1:] for row in rows if row[1] is not None]
            due = [row for row in waiting[:most] if row[0] <= at]
            if len(due) < FEW_DUE:
                break
        if now is None:
            self._database.clock.set(at)
        next_due_at = waiting[len(due)][0] if len(waiting) > len(due) else None
        return self.due_from([row[1:] for row in due], at, next_due_at)

    def record_problems(self, rows: Sequence[Row]) -> None:
        self._database.transact("problem", lambda tx: tx.run_many(RECORD_PROBLEM, rows))

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
        seqs: list[int] = []
        for table in ("held", "later", "ready"):
            query = (
                f"SELECT p.seq FROM {{ns}}.job j JOIN {{ns}}.{table} p ON p.seq = j.seq "
                "WHERE j.schedule_id = %s AND j.fire_at IS NOT NULL ORDER BY p.seq FOR UPDATE OF p"
            )
            seqs += [seq for (seq,) in tx.rows(query, (schedule_id,))]
        return [job for job in job_rows.at(tx, seqs) if job.state.is_waiting]

    def made(self, tx: Transaction, occurrences: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        return job_rows.made(tx, occurrences)

    def add(self, tx: Transaction, jobs: Sequence[NewJob], now: int) -> list[Added]:
        return self._adder.write(tx, jobs, now)
