"""Makes a SQLite table a source of documents, for all processes of one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.documents.fields import Fields
from rota.documents.sources.sqlite.connection import SqliteDatabase
from rota.documents.sources.sqlite.dialect import SqliteDialect
from rota.documents.sources.tables.condition import condition_of
from rota.documents.sources.tables.source import TableSource

if TYPE_CHECKING:
    from rota.documents.sources.sqlite.connection import Place
    from rota.documents.sources.tables.condition import Given


class SqliteSource(TableSource):
    """`SqliteSource("shop.db", "orders", condition={"status": "open"})`, or a function that opens a connection.

    A field is a column, or a path into a column with JSON: "data.job.sleepUntil". `times` says how times are kept:

    - "text" (the default): what SQLite's own functions take and give, with date and time: "2026-01-31 09:00:00",
      "2026-01-31T09:00:00.500Z", "2026-01-31 10:00:00+01:00". A text without a zone is in UTC. A new time is written
      in the form that stood there.
    - "seconds" or "milliseconds": numbers since 1970. New times are whole numbers.
    """

    def __init__(
        self,
        database: Place,
        table: str,
        *,
        fields: Fields | None = None,
        key: str = "id",
        condition: Given = None,
        times: str = "text",
    ) -> None:
        dialect = SqliteDialect(table, key, times)
        super().__init__(
            SqliteDatabase(database),
            dialect,
            fields=fields or Fields(),
            key=key,
            condition=condition_of(condition, mark=dialect.mark, quote=dialect.quote),
        )
