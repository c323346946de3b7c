"""Lists the documents of a state, with the facts about each."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rota.documents.contract import MOST_READ, STATES, DocumentFacts, SideRecord, document_facts
from rota.documents.sources.mongo.queries import RETRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.documents.sources.mongo.connection import Document, Documents
    from rota.documents.sources.mongo.queries import Queries
    from rota.documents.sources.mongo.side_records import Kept, SideRecords

PAGE = 500  # documents that are read at once while those of a state are searched


class Listing:
    """Reads, and changes nothing."""

    def __init__(self, queries: Queries, sides: SideRecords) -> None:
        self._queries = queries
        self._sides = sides

    def pages(self, documents: Documents, limit: int, state: str | None, now: int) -> Iterator[list[DocumentFacts]]:
        """Documents that may be in a state, by a query for it; without one, all states, those with a time first."""
        queries = self._queries
        path = queries.fields.sleep_until
        if state is None:
            chosen = [{"$or": [queries.in_state(one, now) for one in STATES if one != "done"]}]
            chosen.append(queries.in_state("done", now))
        elif queries.fields.has_lock or state not in ("running", "retrying"):
            chosen = [queries.in_state(state, now)]
        else:  # with four fields, only the side records know them
            ids = self._sides.ids(is_lock=state == "running", most=MOST_READ)
            chosen = [{"$and": [{"_id": {"$in": ids}}, queries.in_state(state, now)]}]
        for query in chosen:
            cursor = documents.find(query, queries.projection).sort([(path, 1), ("_id", 1)]).limit(MOST_READ)
            size = min(limit + 1, PAGE)
            while page := list(islice(cursor, size)):
                yield self.facts_of(page, now)
                size = PAGE

    def facts_of(self, found: list[Document], now: int) -> list[DocumentFacts]:
        sides = self._sides.find([(document["_id"], self._queries.sleep_until(document)) for document in found])
        return [self._facts(document, kept, now) for document, kept in zip(found, sides, strict=True)]

    def _facts(self, document: Document, kept: Kept | None, now: int) -> DocumentFacts:
        at = self._queries.sleep_until(document)
        until, by = self._queries.lock_of(document)
        if kept is not None and kept.token:
            until, by = at, kept.token
        side = kept.side if kept else SideRecord(nominal=at or 0)
        interval, by = self._queries.terms(document, at).interval, "" if by == RETRY else by
        return document_facts(document["_id"], at, side, interval=interval, locked_by=by, locked_until=until, now=now)
