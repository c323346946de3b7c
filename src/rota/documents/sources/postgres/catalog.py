"""Reads the catalog of PostgreSQL, and says what keeps a table from being a source: columns, types, the key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rota.documents.contract import Finding

if TYPE_CHECKING:
    from rota.documents.sources.tables.dialect import Names, Session

COLUMNS = """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""
UNIQUE = """SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND i.indpred IS NULL
AND a.attname = %s"""
_TIME = re.compile(r"timestamp(?:\((\d)\))? with time zone")


class Catalog:
    """What the server knows of one table."""

    def __init__(self, session: Session, table: str) -> None:
        self._session = session
        self._table = table
        self.types: dict[str, str] = dict(session.select(COLUMNS, (table,)).rows)

    def step(self, column: str) -> int:
        """The microseconds between two times that a column can hold."""
        found = _TIME.fullmatch(self.types[column])
        places = int(found[1]) if found is not None and found[1] else 6
        return int(10 ** (6 - places))

    def faults(self, names: Names) -> list[Finding]:
        if not self.types:
            message = f"the table {self._table} does not exist; is the name right, and its schema?"
            return [Finding(kind="no-table", message=message, is_error=True)]
        missing = [column for column in names.columns() if column not in self.types]
        if missing:
            return [self._no_column(column, names) for column in missing]
        found = [self._time_column(path) for path in names.times if "." not in path]
        found += [self._json_column(path.split(".")[0]) for path in (*names.times, *names.others) if "." in path]
        faults = list(dict.fromkeys(one for one in found if one is not None))
        return faults or self._key(names.key)

    def _no_column(self, column: str, names: Names) -> Finding:
        return Finding(
            kind="no-column",
            message=f"the table {self._table} has no column {column}",
            command=f"ALTER TABLE {self._table} ADD COLUMN {_quoted(column)} {_kind_of(column, names)}",
            is_error=True,
        )

    def _time_column(self, column: str) -> Finding | None:
        kind = self.types[column]
        if _TIME.fullmatch(kind):
            return None
        quoted = _quoted(column)
        using = f" USING {quoted} AT TIME ZONE 'UTC'" if kind.startswith("timestamp") else ""
        return Finding(
            kind="not-a-time",
            message=f"the column {column} of {self._table} has the type {kind}, which names no instant; make it "
            "timestamptz, in the timezone that its times are meant in",
            command=f"ALTER TABLE {self._table} ALTER COLUMN {quoted} TYPE timestamptz{using}",
            is_error=True,
        )

    def _json_column(self, column: str) -> Finding | None:
        if self.types[column] == "jsonb":
            return None
        quoted = _quoted(column)
        return Finding(
            kind="not-json",
            message=f"the column {column} of {self._table} has the type {self.types[column]}; a path leads into jsonb",
            command=f"ALTER TABLE {self._table} ALTER COLUMN {quoted} TYPE jsonb USING {quoted}::jsonb",
            is_error=True,
        )

    def _key(self, key: str) -> list[Finding]:
        if self._session.select(UNIQUE, (self._table, key)).rows:
            return []
        return [
            Finding(
                kind="key-not-unique",
                message=f"the column {key} of {self._table} is not unique, so it names no single row",
                command=f"CREATE UNIQUE INDEX CONCURRENTLY ON {self._table} ({_quoted(key)})",
                is_error=True,
            )
        ]


def _kind_of(column: str, names: Names) -> str:
    if column in names.times:
        return "timestamptz"
    if column == names.flag:
        return "boolean"
    return "jsonb" if any(path.startswith(f"{column}.") for path in (*names.times, *names.others)) else "text"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
