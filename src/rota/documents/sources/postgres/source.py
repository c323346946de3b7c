"""Makes a PostgreSQL table a source of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.documents.fields import Fields
from rota.documents.sources.postgres.connection import PostgresDatabase
from rota.documents.sources.postgres.dialect import PostgresDialect
from rota.documents.sources.tables.condition import condition_of
from rota.documents.sources.tables.source import TableSource

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

    from rota.documents.sources.tables.condition import Given


class PostgresSource(TableSource):
    """`PostgresSource("postgresql://…", "shop.orders", condition=("total > %s", [5]))`, or a pool instead of the URL.

    A field is a column, or a path into a column of type jsonb: "data.job.sleepUntil". Columns with times are
    timestamptz. Times in JSON are texts in UTC: "2026-01-31T09:00:00Z" or "2026-01-31T09:00:00.500+00:00".
    """

    def __init__(
        self,
        database: str | ConnectionPool[Any],
        table: str,
        *,
        fields: Fields | None = None,
        key: str = "id",
        condition: Given = None,
    ) -> None:
        dialect = PostgresDialect(table, key)
        super().__init__(
            PostgresDatabase(database),
            dialect,
            fields=fields or Fields(),
            key=key,
            condition=condition_of(condition, mark=dialect.mark, quote=dialect.quote),
        )
