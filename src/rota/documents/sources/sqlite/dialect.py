"""Builds the SQL of a source on SQLite: columns, paths into JSON, and the three forms of times in its tables."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from rota.documents.contract import Finding
from rota.documents.sources.tables.dialect import Dialect, parents, split_path
from rota.documents.sources.tables.side_table import CREATE, SIDE_TABLE
from rota.documents.sources.tables.text_times import micros_in_text, step_of, text_of
from rota.errors import BadOption
from rota.model.micros import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.documents.sources.tables.dialect import Names, Session

UNITS = {"seconds": SECOND, "milliseconds": MILLISECOND}
EPOCH_DAY = 2_440_587.5  # 1970-01-01 as julianday() counts
DAY = 86_400 * SECOND
FIRST, LAST = -62_135_596_800, 253_402_300_799  # seconds: the years 1 to 9999
# julianday('now') would be another value with every look, which an index must not hold.
FORM = "[1-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]*"


class SqliteDialect(Dialect):
    """One table of one file."""

    mark: ClassVar[str] = "?"
    misfits = (sqlite3.Error, OverflowError)

    def __init__(self, table: str, key: str, times: str) -> None:
        if times != "text" and times not in UNITS:
            raise BadOption(f"times={times!r} is not known; write 'text', 'seconds' or 'milliseconds'")
        self.name = table
        self.times_are = (
            "Write a text with date and time, such as '2026-01-31 09:00:00'"
            if times == "text"
            else f"Write a number of {times} since 1970"
        )
        self._key = self.quote(key)
        self._unit = UNITS.get(times, 0)

    def quote(self, name: str) -> str:
        if not isinstance(name, str) or not name or "\0" in name:
            raise BadOption(f"{name!r} is not a name of a table or a column")
        return '"' + name.replace('"', '""') + '"'

    def table(self) -> str:
        return self.quote(self.name)

    def side_table(self) -> str:
        return SIDE_TABLE

    def id_text(self) -> str:
        return f"quote({self._key})"

    def lock_rows(self, *, skips: bool) -> str:  # noqa: ARG002 - one transaction writes at a time
        return ""

    def read(self, path: str) -> str:
        column, inner = split_path(path)
        quoted = self.quote(column)
        if inner:
            return f"CASE WHEN json_valid({quoted}) THEN json_extract({quoted}, {_json_path(inner)}) END"
        return f"+{quoted}"  # an expression, so that no converter of the owner's connection changes it

    def sortable(self, path: str) -> str:
        value = self.read(path)
        if self._unit:
            first, last = (seconds * (SECOND // self._unit) for seconds in (FIRST, LAST))
            is_number = f"typeof({value}) IN ('integer', 'real')"
            return f"CASE WHEN {is_number} AND {value} BETWEEN {first} AND {last} THEN {value} END"
        return f"CASE WHEN typeof({value}) = 'text' AND {value} GLOB '{FORM}' THEN julianday({value}) END"

    def bound(self, path: str, at: int) -> float:  # noqa: ARG002 - all times are kept alike
        if self._unit:
            return at / self._unit
        return (at - MILLISECOND) / DAY + EPOCH_DAY  # julianday() rounds to milliseconds: no lock may end early

    def micros(self, path: str, value: Any) -> int | None:  # noqa: ARG002 - all times are kept alike
        if not self._unit:
            return micros_in_text(value) if isinstance(value, str) else None
        if not isinstance(value, (int, float)) or not FIRST <= value * self._unit / SECOND <= LAST:
            return None
        return value * self._unit if isinstance(value, int) else round(value * self._unit)

    def stored(self, path: str, at: int, like: Any) -> int:  # noqa: ARG002 - all times are kept alike
        unit = self._unit or step_of(like)
        return -(-at // unit) * unit

    def value(self, path: str, at: int, like: Any) -> Any:  # noqa: ARG002 - all times are kept alike
        return at // self._unit if self._unit else text_of(at, like)

    def new_value(self, column: str, paths: list[str], frees: list[str]) -> str:
        if column in paths:
            return self.mark
        if column in frees:
            return "NULL"
        quoted = self.quote(column)
        value = f"COALESCE({quoted}, '{{}}')"
        for parent in parents(paths):  # SQLite writes nothing under a null
            there = f"json(COALESCE(json_extract({quoted}, {_json_path(parent)}), '{{}}'))"
            value = f"json_set({value}, {_json_path(parent)}, {there})"
        if paths:
            value = f"json_set({value}, {', '.join(f'{_json_path(split_path(path)[1])}, ?' for path in paths)})"
        if frees:
            value = f"json_remove({value}, {', '.join(_json_path(split_path(path)[1]) for path in frees)})"
        return value

    # What a table needs.

    def has_side_table(self, session: Session) -> bool:
        found = session.select("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (SIDE_TABLE,))
        return bool(found.rows)

    def create_side_table(self, session: Session) -> None:
        session.run(CREATE.format(table=SIDE_TABLE))

    def faults(self, session: Session, names: Names) -> list[Finding]:
        there = {_folded(row[1]) for row in session.select(f"PRAGMA table_xinfo({self.table()})").rows}
        if not there:
            message = f"the table {self.name} does not exist; is the name right?"
            return [Finding(kind="no-table", message=message, is_error=True)]
        missing = [column for column in names.columns() if _folded(column) not in there]
        if missing:
            return [self._no_column(column) for column in missing]
        return [] if self._is_unique(session, names.key) else [self._not_unique(names.key)]

    def _no_column(self, column: str) -> Finding:
        return Finding(
            kind="no-column",
            message=f"the table {self.name} has no column {column}",
            command=f"ALTER TABLE {self.table()} ADD COLUMN {self.quote(column)}",
            is_error=True,
        )

    def _is_unique(self, session: Session, key: str) -> bool:
        columns = session.select(f"PRAGMA table_xinfo({self.table()})").rows
        if [_folded(row[1]) for row in columns if row[5]] == [_folded(key)]:
            return True
        for row in session.select(f"PRAGMA index_list({self.table()})").rows:
            _, name, is_unique, _, is_partial = row[:5]
            keys = [_folded(one[2] or "") for one in session.select(f"PRAGMA index_info({self.quote(name)})").rows]
            if is_unique and not is_partial and keys == [_folded(key)]:
                return True
        return False

    def _not_unique(self, key: str) -> Finding:
        return Finding(
            kind="key-not-unique",
            message=f"the column {key} of {self.name} is not unique, so it names no single row",
            command=f"CREATE UNIQUE INDEX {self.quote(f'{self.name}_{key}')} ON {self.table()} ({self.quote(key)})",
            is_error=True,
        )

    def json_type_is(self, column: str, inner: Sequence[str], test: str) -> str:
        quoted = self.quote(column)
        return f"(json_valid({quoted}) AND json_type({quoted}, {_json_path(inner)}) {test})"

    def sorts_by_index(self, session: Session, sql: str, params: Sequence[Any]) -> bool:
        # Neither a plan nor Python's cache of statements notices an index that another connection has just made.
        session.select("SELECT 1 FROM sqlite_master LIMIT 1")
        plan = session.select(f"EXPLAIN QUERY PLAN {sql} -- {uuid4()}", params)
        steps = [str(row[3]) for row in plan.rows]
        return any(" USING " in step for step in steps) and not any("TEMP B-TREE" in step for step in steps)

    def create_index(self, name: str, columns: Sequence[str]) -> str:
        return f"CREATE INDEX {self.quote(name)} ON {self.table()} ({', '.join(columns)})"


def _folded(name: str) -> str:
    """A name as SQLite compares names: sleepuntil and sleepUntil are one column."""
    return name.lower()


def _json_path(parts: Sequence[str]) -> str:
    """A path into JSON as a literal: it must stand in an index as it stands in a query."""
    if any('"' in part for part in parts):
        raise BadOption(f"the path {'.'.join(parts)!r} cannot be used: SQLite takes no '\"' in a name within JSON")
    text = "$" + "".join(f'."{part}"' for part in parts)
    return "'" + text.replace("'", "''") + "'"
