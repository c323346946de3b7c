"""Builds the SQL of a source on PostgreSQL: timestamptz columns, and paths into jsonb with times as texts in UTC."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from psycopg.types.json import Jsonb

from rota.documents.sources.postgres.catalog import Catalog
from rota.documents.sources.tables.dialect import Dialect, parents, split_path
from rota.documents.sources.tables.side_table import CREATE, SIDE_TABLE
from rota.documents.sources.tables.text_times import micros_in_text, step_of, text_of
from rota.errors import BadOption
from rota.model.micros import SECOND, datetime_of, micros_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.documents.contract import Finding
    from rota.documents.sources.tables.dialect import Names, Session

LONGEST_NAME = 63  # bytes; PostgreSQL cuts a longer one without a word
FIRST, LAST = -62_135_596_800 * SECOND, 253_402_300_799 * SECOND  # what stands for -infinity and infinity
# The order of these texts is the order of their times, so that an index can hold them: the server has no cast of a
# text to a time that an index may use.
FORM = (
    r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"([.][0-9]{1,6})?(Z|[+]00:00)$"
)
ZONE = "(Z|[+]00:00)$"
MAKING_SIDE_TABLE = 0x726F7461  # an advisory lock: two processes may start at once


class PostgresDialect(Dialect):
    """One table of one database."""

    mark: ClassVar[str] = "%s"
    misfits = (psycopg.DataError, psycopg.ProgrammingError)
    times_are = "Write a text in UTC, such as '2026-01-31T09:00:00Z'"

    def __init__(self, table: str, key: str) -> None:
        if not isinstance(table, str) or not table:
            raise BadOption(f"{table!r} is not a name of a table; write 'orders' or 'shop.orders'")
        self.name = table
        self._key = self.quote(key)
        self._schema, _, self._table = table.rpartition(".")
        self._steps: dict[str, int] = {}  # microseconds that a column of lower precision keeps
        self._key_type = ""  # as the catalog says
        self.table()

    def quote(self, name: str) -> str:
        if not isinstance(name, str) or not name or "\0" in name or len(name.encode()) > LONGEST_NAME:
            raise BadOption(f"{name!r} is not a name of a table or a column")
        return '"' + name.replace('"', '""').replace("%", "%%") + '"'

    def table(self) -> str:
        return f"{self.quote(self._schema)}.{self.quote(self._table)}" if self._schema else self.quote(self._table)

    def side_table(self) -> str:
        return f"{self.quote(self._schema)}.{SIDE_TABLE}" if self._schema else SIDE_TABLE

    def id_text(self) -> str:
        return f"{self._key}::text"

    @property
    def key_mark(self) -> str:
        return f"{self.mark}::{self._key_type}" if self._key_type else self.mark

    def key_value(self, given: Any) -> Any:
        return Jsonb(given) if self._key_type == "jsonb" else given

    def lock_rows(self, *, skips: bool) -> str:
        """The weaker lock lets rows of other tables refer to these meanwhile."""
        return f" FOR NO KEY UPDATE OF t{' SKIP LOCKED' if skips else ''}"

    # Fields.

    def read(self, path: str) -> str:
        column, inner = split_path(path)
        if not inner:
            return self.quote(column)
        return f"NULLIF({self.quote(column)} #> {_json_path(inner)}, 'null'::jsonb)"

    def sortable(self, path: str) -> str:
        column, inner = split_path(path)
        if not inner:
            return self.quote(column)
        text = f"({self.quote(column)} #>> {_json_path(inner)})"
        return f"(CASE WHEN {text} ~ '{FORM}' THEN regexp_replace({text}, '{ZONE}', '') END COLLATE \"C\")"

    def bound(self, path: str, at: int) -> Any:
        time = datetime_of(at)
        return time.replace(tzinfo=None).isoformat(timespec="microseconds") if split_path(path)[1] else time

    def micros(self, path: str, value: Any) -> int | None:
        if isinstance(value, datetime):
            return micros_of(value) if value.tzinfo is not None else None
        if not isinstance(value, str):
            return None
        if split_path(path)[1]:
            return micros_in_text(value) if re.fullmatch(r".*(Z|[+-]\d\d:\d\d)", value, re.IGNORECASE) else None
        return FIRST if value.startswith("-") or value.endswith("BC") else LAST

    def stored(self, path: str, at: int, like: Any) -> int:
        step = step_of(like) if split_path(path)[1] else self._steps.get(path, 1)
        return -(-at // step) * step

    def value(self, path: str, at: int, like: Any) -> Any:
        return text_of(at, like) if split_path(path)[1] else datetime_of(at)

    def new_value(self, column: str, paths: list[str], frees: list[str]) -> str:
        if column in paths:
            return self.mark
        if column in frees:
            return "NULL"
        quoted = self.quote(column)
        value = f"COALESCE({quoted}, '{{}}'::jsonb)"
        for parent in parents(paths):
            there = f"COALESCE(NULLIF({quoted} #> {_json_path(parent)}, 'null'::jsonb), '{{}}'::jsonb)"
            value = f"jsonb_set({value}, {_json_path(parent)}, {there})"
        for path in paths:
            new = f"COALESCE(to_jsonb({self.mark}::text), 'null'::jsonb)"
            value = f"jsonb_set({value}, {_json_path(split_path(path)[1])}, {new})"
        for path in frees:
            value = f"({value} #- {_json_path(split_path(path)[1])})"
        return value

    # What a table needs.

    def has_side_table(self, session: Session) -> bool:
        name = self.side_table().replace("%%", "%")
        return bool(session.select("SELECT to_regclass(%s) IS NOT NULL", (name,)).rows[0][0])

    def create_side_table(self, session: Session) -> None:
        session.run("SELECT pg_advisory_xact_lock(%s)", (MAKING_SIDE_TABLE,))
        session.run(CREATE.format(table=self.side_table()))

    def faults(self, session: Session, names: Names) -> list[Finding]:
        catalog = Catalog(session, self.table().replace("%%", "%"))
        faults = catalog.faults(names)
        if not faults:
            self._key_type = catalog.types[names.key]
            self._steps = {path: catalog.step(path) for path in names.times if not split_path(path)[1]}
        return faults

    def json_type_is(self, column: str, inner: Sequence[str], test: str) -> str:
        return f"jsonb_typeof({self.quote(column)} #> {_json_path(inner)}) {test}"

    def sorts_by_index(self, session: Session, sql: str, params: Sequence[Any]) -> bool:
        """Ask for the plan of a large table: on a small one, the server reads all rows whatever there is."""
        session.run("BEGIN")
        try:
            for way in ("seqscan", "sort", "bitmapscan"):
                session.run(f"SET LOCAL enable_{way} = off")
            ((plan,),) = session.select(f"EXPLAIN (FORMAT JSON) {sql}", params).rows
        finally:
            session.run("ROLLBACK")
        return not any("Sort" in kind or kind == "Seq Scan" for kind in _nodes(plan[0]["Plan"]))

    def create_index(self, name: str, columns: Sequence[str]) -> str:
        parts = ", ".join(columns)
        return (
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {self.quote(name)} ON {self.table()} ({parts}) "
            f"WHERE {columns[-1]} IS NOT NULL"
        )


def _nodes(plan: dict[str, Any]) -> Iterator[str]:
    yield plan["Node Type"]
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _json_path(parts: Sequence[str]) -> str:
    """A path into jsonb as a literal: it must stand in an index as it stands in a query."""
    texts = ["'" + part.replace("'", "''").replace("%", "%%") + "'" for part in parts]
    return f"ARRAY[{', '.join(texts)}]::text[]"
