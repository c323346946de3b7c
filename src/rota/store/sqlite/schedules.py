"""Edits schedules under their version, and reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.shared.sql_codec import SCHEDULE_COLUMNS, SCHEDULE_TYPES
from rota.store.shared.sql_schedules import RECORD_PROBLEM, SqlSchedules
from rota.store.sqlite import clock
from rota.store.sqlite.codec import CODEC, JOB_COLUMNS, jobs_of
from rota.store.sqlite.transaction import LARGEST_IN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Added, Due
    from rota.store.shared.sql import Row
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.records import Records
    from rota.store.sqlite.transaction import Transaction, Transactions


_REPLACE = (
    f"INSERT OR REPLACE INTO {{ns}}.schedule ({', '.join(SCHEDULE_TYPES)}) "
    f"VALUES ({', '.join('?' * len(SCHEDULE_TYPES))})"
)


class Schedules(SqlSchedules["Transaction"]):
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
        super().__init__(transactions.select, CODEC, changer, ledger, records)
        self._transactions = transactions
        self._adder = adder
        self._name = f"{namespace}_schedule"

    def edit_schedules(self, edits: Sequence[Edit], now: int | None) -> list[str]:
        with self._transactions.work("edit", now) as tx:
            tx.notify("schedules", "jobs")
            return self.edit(tx, edits, tx.now)

    def update(self, tx: Transaction, schedules: Sequence[Schedule]) -> None:
        tx.run_many(_REPLACE, [CODEC.schedule_row(schedule) for schedule in schedules])

    def add(self, tx: Transaction, jobs: Sequence[NewJob], now: int) -> list[Added]:
        del now  # it is the transaction's
        return self._adder.add(tx, jobs)

    def made(self, tx: Transaction, occurrences: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        found: set[tuple[str, int]] = set()
        for start in range(0, len(occurrences), LARGEST_IN):
            chunk = occurrences[start : start + LARGEST_IN]
            query = (
                f"WITH wanted (name, at) AS (VALUES {', '.join(['(?, ?)'] * len(chunk))}) SELECT name, at FROM wanted "
                "WHERE EXISTS (SELECT 1 FROM {ns}.job WHERE schedule_id = name AND fire_at = at)"
            )
            found.update(tx.rows(query, [value for pair in chunk for value in pair]))
        return found

    def waiting_of(self, tx: Transaction, schedule_id: str) -> list[Job]:
        query = (
            f"SELECT {JOB_COLUMNS} FROM {{ns}}.job WHERE schedule_id = ? AND fire_at IS NOT NULL "
            "AND state IN ('scheduled', 'queued', 'held')"
        )
        return jobs_of(tx.rows(query, (schedule_id,)))

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
        return self.due_from(rows, at, following[0] if following else None)

    def record_problems(self, rows: Sequence[Row]) -> None:
        with self._transactions.write("problem") as tx:
            tx.run_many(RECORD_PROBLEM, rows)
