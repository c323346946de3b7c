"""Lists queues of documents, their documents and their problems over HTTP, and explains why a document has not run."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rota.inspector.facts.document import (
    DocumentFindingFacts,
    DocumentQueueFacts,
    DocumentWhyFacts,
    QueuedDocumentFacts,
)
from rota.web.route import Ask, Route
from rota.web.types import Limit, Name, Query


class DocumentQueuePath(Struct, frozen=True):
    """Which queue."""

    name: Name


class DocumentsQuery(Query, frozen=True, kw_only=True):
    """Which documents of a queue."""

    state: Literal["waiting", "due", "running", "retrying", "done"] | None = None
    limit: Limit = 50


class DocumentQuery(Query, frozen=True, kw_only=True):
    """Which document: its id as text."""

    id: Annotated[str, Meta(min_length=1, max_length=1_000)]


class DocumentQueues(Struct, kw_only=True):
    """All queues, by name."""

    items: list[DocumentQueueFacts]


class QueuedDocuments(Struct, kw_only=True):
    """Documents of a queue, oldest time first."""

    items: list[QueuedDocumentFacts]


class DocumentFindings(Struct, kw_only=True):
    """What is wrong with a queue's documents, and what mends it."""

    items: list[DocumentFindingFacts]


def list_document_queues(ask: Ask) -> DocumentQueues:
    return DocumentQueues(items=ask.app.documents.queues())


def list_documents(ask: Ask) -> QueuedDocuments:
    query = ask.query
    return QueuedDocuments(items=ask.app.documents.list(ask.path.name, state=query.state, limit=query.limit))


def check_documents(ask: Ask) -> DocumentFindings:
    return DocumentFindings(items=ask.app.documents.check(ask.path.name, handler=False))


def get_document(ask: Ask) -> QueuedDocumentFacts:
    return ask.app.documents.get(ask.path.name, ask.query.id)


def why_document(ask: Ask) -> DocumentWhyFacts:
    return ask.app.documents.why(ask.path.name, ask.query.id)


_QUEUE = "/api/v1/documents/{name}"

ROUTES = (
    Route(method="GET", path="/api/v1/documents", role="read", handle=list_document_queues, answer=DocumentQueues,
          says="All queues of documents, with their documents counted by state, up to 1,000 each."),
    Route(method="GET", path=_QUEUE, role="read", handle=list_documents, params=DocumentQueuePath,
          query=DocumentsQuery, answer=QueuedDocuments, says="Documents of a queue, oldest time first."),
    Route(method="GET", path=f"{_QUEUE}/check", role="read", handle=check_documents, params=DocumentQueuePath,
          answer=DocumentFindings, says="What keeps documents of a queue from running, or makes it slow."),
    Route(method="GET", path=f"{_QUEUE}/document", role="read", handle=get_document, params=DocumentQueuePath,
          query=DocumentQuery, answer=QueuedDocumentFacts, says="One document: its state, times and last error."),
    Route(method="GET", path=f"{_QUEUE}/why", role="read", handle=why_document, params=DocumentQueuePath,
          query=DocumentQuery, answer=DocumentWhyFacts, says="What a document waits for, and what to do."),
)  # fmt: skip
