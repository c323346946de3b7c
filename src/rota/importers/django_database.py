"""Opens a connection to the database of a Django site, in SQLite or PostgreSQL: short transactions with locked rows."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from rota.errors import BadStoreUrl
from rota.model.secrets.masking import masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Rows = list[dict[str, Any]]

BUSY = 30.0  # seconds to wait for a SQLite file that another process writes


class DjangoDatabase:
    """Runs statements with `%s` for their values. Every problem is an error that names no password.

    With `is_read_only`, a file of SQLite is opened for reading alone.
    """

    def __init__(self, url: str, *, is_read_only: bool = False) -> None:
        self._is_read_only = is_read_only
        self._is_sqlite = url.startswith("sqlite:///")
        self._errors: type[Exception] = sqlite3.Error
        if self._is_sqlite:
            self._connection: Any = self._open_sqlite(unquote(url.removeprefix("sqlite:///")))
        elif urlsplit(url).scheme in {"postgres", "postgresql"}:
            self._connection = self._open_postgres(url)
        elif "://" not in url:
            raise BadStoreUrl(f"{masked(url)!r} names no kind of database; for a file of SQLite, write sqlite:///PATH")
        else:
            raise BadStoreUrl(
                f"{url.partition('://')[0]}://… is no database of Django that Rota knows; use sqlite:/// or "
                "postgresql://"
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with self._translated():
            if not self._is_sqlite:
                with self._connection.transaction():
                    yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def rows(self, sql: str, values: Sequence[object] = ()) -> Rows:
        """Run a statement; answers its rows."""
        with self._translated():
            if self._is_sqlite:
                found = self._connection.execute(sql.replace("%s", "?"), [_sqlite_value(one) for one in values])
            else:
                found = self._connection.execute(sql, values or None)
            return [dict(row) for row in found] if found.description else []

    def locked(self, select: str, values: Sequence[object] = ()) -> Rows:
        """Select rows and lock them until the transaction ends; a transaction of SQLite has locked the file."""
        return self.rows(select if self._is_sqlite else f"{select} FOR UPDATE", values)

    def close(self) -> None:
        self._connection.close()

    def _open_sqlite(self, path: str) -> Any:
        with self._translated():
            mode = "ro" if self._is_read_only else "rw"
            connection = sqlite3.connect(
                f"file:{quote(path)}?mode={mode}", uri=True, isolation_level=None, timeout=BUSY
            )
            connection.row_factory = sqlite3.Row
            return connection

    def _open_postgres(self, url: str) -> Any:
        try:
            import psycopg  # noqa: PLC0415 - an extra
            from psycopg.rows import dict_row  # noqa: PLC0415 - likewise
        except ImportError as err:
            raise BadStoreUrl("PostgreSQL needs psycopg; install rota[postgres]") from err
        self._errors = psycopg.Error
        with self._translated():
            return psycopg.connect(url, row_factory=dict_row, autocommit=True)

    @property
    def _verb(self) -> str:
        return "read" if self._is_read_only else "read or changed"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors as err:
            raise BadStoreUrl(f"the tables of django-celery-beat cannot be {self._verb}: {str(err).strip()}") from err


def _sqlite_value(value: object) -> object:
    """As Django writes it: a time is text in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return value


def instant_of(said: Any) -> datetime | None:
    """A time as Django keeps it: text in UTC in SQLite, an aware time in PostgreSQL."""
    if said is None:
        return None
    try:
        at = said if isinstance(said, datetime) else datetime.fromisoformat(said)
    except (TypeError, ValueError) as err:
        raise BadStoreUrl(f"the database of django-celery-beat has a time that cannot be read: {said!r}") from err
    return at if at.tzinfo else at.replace(tzinfo=UTC)
