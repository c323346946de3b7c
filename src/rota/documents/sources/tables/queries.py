"""Builds the queries and updates of a source on a table: which rows are due, and what is written into them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.documents.sources.refused import Refused
from rota.documents.sources.tables.dialect import Names
from rota.model.micros import MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.documents.fields import Fields
    from rota.documents.sources.tables.condition import Condition
    from rota.documents.sources.tables.dialect import Dialect, Row, Session

OWN = 3  # columns of a query before the fields: the id as text, the id, and whether it is blocked
FEW = 5  # times that are read to find the next one: a time that Python cannot hold does not hide the others
LATER = 2 * MILLISECOND  # some databases round times to milliseconds


class Found(NamedTuple):
    """A row: its id, the id as text, all its columns, and the values of the schedule's fields by their paths."""

    id: Any
    id_text: str
    document: Row
    values: dict[str, Any]
    is_blocked: bool  # by a list on the way to a field, or by a plain value on the way to the lock


class Queries:
    """What is asked of the server, for one table, one set of fields and one condition."""

    def __init__(self, dialect: Dialect, fields: Fields, key: str, condition: Condition) -> None:
        lock = [path for path in (fields.locked_until, fields.locked_by) if path is not None]
        self.fields = fields
        self.paths = [fields.sleep_until, fields.interval, fields.repeat_until, fields.auto_remove, *lock]
        times = [path for path in (fields.sleep_until, fields.repeat_until, fields.locked_until) if path is not None]
        others = [path for path in self.paths if path not in times]
        self.names = Names(
            key=key,
            columns_of_condition=condition.columns,
            times=times,
            others=others,
            flag=fields.auto_remove,
        )
        self.condition = condition
        self.refused = Refused()
        self._lock = lock
        self._dialect = dialect
        self._key = dialect.quote(key)
        self._sleep = dialect.sortable(fields.sleep_until)
        self.blocks = {
            (part, test): path
            for path in self.paths
            for part, test in dialect.blocks_on_the_way(path, is_lock=path in lock)
        }
        self._no_blocks = "".join(f" AND ({test}) IS NOT TRUE" for _, test in self.blocks)
        is_blocked = " OR ".join(f"({test}) IS TRUE" for _, test in self.blocks) or "1 = 0"
        read = [dialect.id_text(), self._key, is_blocked, *(dialect.read(path) for path in self.paths)]
        own = [f'{expression} AS "rota {number}"' for number, expression in enumerate(read)]  # no column's name
        self._select = f"SELECT t.*, {', '.join(own)} FROM {dialect.table()} AS t"  # noqa: S608 - all names are quoted

    # Reading.

    def free_until(self, now: int, until: int) -> tuple[str, list[Any]]:
        """The test for rows whose time is not later, and that are not locked, and its parameters."""
        dialect, fields = self._dialect, self.fields
        sql = f" WHERE {self._sleep} <= {dialect.mark}"
        params = [dialect.bound(fields.sleep_until, until)]
        if fields.locked_until is not None:
            lock = dialect.sortable(fields.locked_until)
            sql += f" AND ({lock} IS NULL OR {lock} <= {dialect.mark})"
            params.append(dialect.bound(fields.locked_until, now))
        refused = [dialect.key_value(one) for one in self.refused.ids()]
        if refused:
            sql += f" AND {self._key} NOT IN ({', '.join([dialect.key_mark] * len(refused))})"
        return sql + self._no_blocks + self.condition.sql, [*params, *refused, *self.condition.params]

    def oldest(self, now: int, until: int, limit: int) -> tuple[str, list[Any]]:
        """The query for the times of the oldest free rows."""
        where, params = self.free_until(now, until)
        time = self._dialect.read(self.fields.sleep_until)
        sql = f"SELECT {time} FROM {self._dialect.table()} AS t{where} ORDER BY {self._sleep} LIMIT {limit}"  # noqa: S608
        return sql, params

    def times(self, session: Session, now: int, until: int) -> list[Any]:
        return [value for (value,) in session.select(*self.oldest(now, until, FEW)).rows]

    def due(self, session: Session, now: int, limit: int) -> list[Found]:
        """The oldest rows that are due and free, locked for this transaction."""
        where, params = self.free_until(now, now)
        end = f" ORDER BY {self._sleep} LIMIT {int(limit)}{self._dialect.lock_rows(skips=True)}"
        return self._found(session, where + end, params)

    def by_ids(self, session: Session, ids: Sequence[Any]) -> list[Found]:
        """Rows by their ids, locked for this transaction in one order, so that two callers do not wait in a circle."""
        where = f" WHERE {self._key} IN ({', '.join([self._dialect.key_mark] * len(ids))})"
        end = f" ORDER BY {self._key}{self._dialect.lock_rows(skips=False)}"
        return self._found(session, where + end, [self._dialect.key_value(one) for one in ids])

    def in_state(self, session: Session, state: str, now: int, limit: int, start: int) -> list[Found]:
        """Rows that may be in a state, oldest first; "timed": all that hold a time."""
        test, params = self._state(state, now)
        end = f" ORDER BY {self._sleep}, {self._key} LIMIT {int(limit)} OFFSET {int(start)}"
        where = f" WHERE {test}{self._no_blocks}{self.condition.sql}{end}"
        return self._found(session, where, [*params, *self.condition.params])

    def scheduled_with(self, session: Session, wanted: Any) -> list[Found]:
        """The row with this id, if it can carry a schedule."""
        is_job = f"({self._sleep} IS NOT NULL OR {self._dialect.read(self.fields.sleep_until)} IS NULL)"
        where = f" WHERE {self._key} = {self._dialect.key_mark} AND {is_job}{self._no_blocks}{self.condition.sql}"
        return self._found(session, where, [self._dialect.key_value(wanted), *self.condition.params])

    def _state(self, state: str, now: int) -> tuple[str, list[Any]]:
        """A test that all rows of a state pass, and few others; a bound may be a millisecond early."""
        dialect, path = self._dialect, self.fields.sleep_until
        if state == "timed":
            return f"{self._sleep} IS NOT NULL", []
        if state == "done":
            return f"{dialect.read(path)} IS NULL", []
        if state == "due":
            return f"{self._sleep} <= {dialect.mark}", [dialect.bound(path, now + LATER)]
        if state == "running" and self.fields.locked_until is not None:
            lock = dialect.sortable(self.fields.locked_until)
            return f"{lock} > {dialect.mark}", [dialect.bound(self.fields.locked_until, now)]
        if state == "waiting":
            return f"{self._sleep} > {dialect.mark}", [dialect.bound(path, now)]
        has_record = "failures > 0" if state == "retrying" else "token <> ''"
        known = f"SELECT id FROM {dialect.side_table()} WHERE source = {dialect.mark} AND {has_record}"  # noqa: S608
        return f"{self._sleep} IS NOT NULL AND {dialect.id_text()} IN ({known})", [dialect.name]

    def without_time(self, session: Session) -> Found | None:
        """A row whose field holds something else than a time."""
        text = self._dialect.read(self.fields.sleep_until)
        where = f" WHERE {text} IS NOT NULL AND {self._sleep} IS NULL{self.condition.sql} LIMIT 1"
        found = self._found(session, where, self.condition.params)
        return found[0] if found else None

    def blocked_by(self, session: Session, test: str) -> Found | None:
        found = self._found(session, f" WHERE {test}{self.condition.sql} LIMIT 1", self.condition.params)
        return found[0] if found else None

    def _found(self, session: Session, end: str, params: Sequence[Any]) -> list[Found]:
        reply = session.select(self._select + end, params)
        columns = len(reply.names) - len(self.paths) - OWN
        return [
            Found(
                id=row[columns + 1],
                id_text=row[columns],
                document=dict(zip(reply.names[:columns], row[:columns], strict=True)),
                values=dict(zip(self.paths, row[columns + OWN :], strict=True)),
                is_blocked=bool(row[columns + 2]),
            )
            for row in reply.rows
        ]

    # Writing.

    def set_fields(
        self, session: Session, changes: Sequence[tuple[Any, dict[str, Any]]], *, frees: bool = False
    ) -> None:
        """Write fields of rows that this transaction has locked; `frees`: the lock's fields are taken away."""
        freed = self._lock if frees else []
        for paths, rows in groupby(changes, key=lambda change: list(change[1])):
            if not paths and not freed:
                continue
            sql, order = self._dialect.assignments(paths, frees=freed)
            session.run_many(
                f"UPDATE {self._dialect.table()} SET {sql} WHERE {self._key} = {self._dialect.key_mark}",  # noqa: S608
                [(*(values[path] for path in order), self._dialect.key_value(id_)) for id_, values in rows],
            )

    def delete(self, session: Session, ids: Sequence[Any]) -> None:
        if ids:
            session.run_many(
                f"DELETE FROM {self._dialect.table()} WHERE {self._key} = {self._dialect.key_mark}",  # noqa: S608
                [(self._dialect.key_value(one),) for one in ids],
            )
