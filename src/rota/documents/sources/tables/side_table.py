"""Keeps side records in a table of Rota's own, under the table, the document's id and the time that it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.documents.contract import SideRecord
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.documents.sources.tables.dialect import Dialect, Session

SIDE_TABLE = "rota_documents"
COLUMNS = "source, id, at, nominal, failures, error, failed_at, token"
CREATE = """CREATE TABLE IF NOT EXISTS {table} (
    source text NOT NULL,
    id text NOT NULL,
    at bigint NOT NULL,
    nominal bigint NOT NULL,
    failures integer NOT NULL,
    error text NOT NULL,
    failed_at bigint,
    token text NOT NULL,
    PRIMARY KEY (source, id, at)
)"""
KEPT_FOR = 30 * 24 * 3600 * SECOND  # after its time; by then the document is gone, or shows another time


class Kept(NamedTuple):
    """A side record, the document and the time that it belongs to, and the token if that time is a lock."""

    id: str
    at: int
    side: SideRecord
    token: str = ""


class SideTable:
    """The records of one table of documents."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._mark = dialect.mark

    def find(self, session: Session, ids: Iterable[str]) -> dict[tuple[str, int], Kept]:
        """The records of documents, by document and time."""
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        found = session.select(
            f"SELECT {COLUMNS} FROM {self._dialect.side_table()} WHERE {self._of(wanted)}",  # noqa: S608 - quoted
            (self._dialect.name, *wanted),
        )
        records = [
            Kept(
                id=id_,
                at=at,
                side=SideRecord(nominal=nominal, failures=failures, error=error, failed_at=failed_at),
                token=token,
            )
            for _, id_, at, nominal, failures, error, failed_at, token in found.rows
        ]
        return {(kept.id, kept.at): kept for kept in records}

    def replace(self, session: Session, ids: Iterable[str], records: Sequence[Kept]) -> None:
        """Replace the records of these documents by new ones."""
        wanted = sorted({*ids, *(kept.id for kept in records)})
        if wanted:
            session.run(
                f"DELETE FROM {self._dialect.side_table()} WHERE {self._of(wanted)}",  # noqa: S608 - quoted
                (self._dialect.name, *wanted),
            )
        if records:
            marks = ", ".join([self._mark] * 8)
            session.run_many(
                f"INSERT INTO {self._dialect.side_table()} ({COLUMNS}) VALUES ({marks})",  # noqa: S608 - quoted
                [self._row(kept) for kept in records],
            )

    def delete_old(self, session: Session) -> None:
        """Delete the records of documents that their owner has removed or changed."""
        session.run(
            f"DELETE FROM {self._dialect.side_table()} WHERE source = {self._mark} AND at < {self._mark}",  # noqa: S608
            (self._dialect.name, session.now - KEPT_FOR),
        )

    def _of(self, ids: Sequence[str]) -> str:
        return f"source = {self._mark} AND id IN ({', '.join([self._mark] * len(ids))})"

    def _row(self, kept: Kept) -> tuple[object, ...]:
        side = kept.side
        error = side.error.replace("\0", "\ufffd").encode(errors="replace").decode()  # what a text cannot hold
        name = self._dialect.name
        return (name, kept.id, kept.at, side.nominal, side.failures, error, side.failed_at, kept.token)
