"""Looks for what keeps rows of a table from running, and creates the index that a queue needs."""

from __future__ import annotations

from hashlib import blake2s
from typing import TYPE_CHECKING

from rota.documents.contract import Finding
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.documents.sources.tables.dialect import Dialect, Session
    from rota.documents.sources.tables.queries import Queries


class Checks:
    """The owner's table as it is; nothing is changed but by create_index()."""

    def __init__(self, dialect: Dialect, queries: Queries) -> None:
        self._dialect = dialect
        self._queries = queries

    def findings(self, session: Session, now: int) -> list[Finding]:
        if faults := self._dialect.faults(session, self._queries.names):
            return faults
        found = [self._index(session, now), self._lists(session), self._wrong_times(session)]
        return [one for one in found if one is not None]

    def create_index(self, session: Session, now: int) -> list[str]:
        if self._dialect.faults(session, self._queries.names) or self._has_index(session, now):
            return []
        session.run(self._command())
        return [f"created the index {self._index_name()} on {self._dialect.name}, by which due documents are found"]

    def _index(self, session: Session, now: int) -> Finding | None:
        if self._has_index(session, now):
            return None
        path = self._queries.fields.sleep_until
        return Finding(
            kind="no-index",
            message=f"no index of {self._dialect.name} sorts rows by {path}, so every look reads all rows",
            command=self._command(),
        )

    def _has_index(self, session: Session, now: int) -> bool:
        return self._dialect.sorts_by_index(session, *self._queries.oldest(now, now + SECOND, 1))

    def _command(self) -> str:
        fixed = [self._dialect.quote(name) for name in self._queries.condition.fixed]
        columns = [*fixed, self._dialect.sortable(self._queries.fields.sleep_until)]
        return self._dialect.create_index(self._index_name(), columns)

    def _index_name(self) -> str:
        """One name for one table, path and condition; short enough for every server."""
        table = self._dialect.name.rpartition(".")[2]
        what = repr((self._dialect.name, self._queries.fields.sleep_until, self._queries.condition.fixed))
        return f"rota_due_{table[:30]}_{blake2s(what.encode(), digest_size=3).hexdigest()}"

    def _lists(self, session: Session) -> Finding | None:
        for (part, test), path in self._queries.blocks.items():
            found = self._queries.blocked_by(session, test)
            if found is not None:
                return Finding(
                    kind="path-through-list",
                    message=f"{part} is a list or a plain value in {found.id!r}, and {path} leads through it; such "
                    "documents do not run. Make it an object, and each element of a list a row of its own",
                    is_error=True,
                )
        return None

    def _wrong_times(self, session: Session) -> Finding | None:
        found = self._queries.without_time(session)
        if found is None:
            return None
        path = self._queries.fields.sleep_until
        return Finding(
            kind="not-a-time",
            message=f"{path} of {found.id!r} is {found.values[path]!r}, which is not a time; such documents do not "
            f"run. {self._dialect.times_are}, or null for a document that is done",
            is_error=True,
        )
