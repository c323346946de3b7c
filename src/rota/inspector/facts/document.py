"""Defines queues of documents, their documents and their problems, as JSON shows them."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class DocumentQueueFacts(Struct, kw_only=True):
    """A queue of documents."""

    name: str
    source: str  # without secrets
    handler: str
    origin: str  # where it is declared: rota.yaml:3, or code
    states: dict[str, int]  # documents by state, counted up to 1,000 each
    more: list[str]  # states of which there are more
    is_whole: bool  # whether all numbers are exact
    error: str  # why the source could not be read


class QueuedDocumentFacts(Struct, kw_only=True):
    """A document of a queue."""

    id: str
    state: str
    sleep_until: datetime | None
    nominal: datetime | None  # the time that its run stands for
    interval: str | None
    locked_by: str
    locked_until: datetime | None
    failures: int
    error: str  # of its last run
    failed_at: datetime | None


class DocumentFindingFacts(Struct, kw_only=True):
    """A problem that keeps documents from running, or makes a queue slow; and its remedy."""

    queue: str
    kind: str
    message: str
    command: str  # for the owner of the documents, in the tool of their server
    is_error: bool  # documents do not run because of it


class DocumentWhyFacts(Struct, kw_only=True):
    """The reason why a document waits, and what to do."""

    queue: str
    id: str
    state: str
    code: str  # of the cause: stays the same if the sentence is reworded
    sentence: str
    fix: str
    error: str  # of its last run, whole
    due_at: datetime | None
