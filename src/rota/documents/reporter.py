"""Tells the observers and the user's hook what became of documents: one event for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.documents.contract import Update
from rota.documents.rules import Ended, Failed, Remove
from rota.errors import BadDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.documents.rules import Decision
    from rota.documents.runs import DocumentRun
    from rota.engine.events import Events


class Reporter:
    """Emits events with the queue's name, and calls `on_error` for documents that failed."""

    def __init__(self, queue: str, events: Events, on_error: Callable[[BaseException, Any], None]) -> None:
        self._queue = queue
        self._events = events
        self._on_error = on_error

    def started(self, run: DocumentRun) -> None:
        if self._events.wants("document.started"):
            side = run.locked.side
            self._events.emit(
                "document.started",
                run.started_at,
                queue=self._queue,
                document_id=run.locked.id,
                nominal=side.nominal,
                failures=side.failures,
            )

    def ended(self, run: DocumentRun, decision: Decision, now: int) -> None:
        """A run has ended, and what became of the document was written."""
        match run.outcome:
            case Failed(error=error):
                self._failed(run, decision, error, now)
            case Ended():
                self._passed_its_end(run, now)
            case _:
                self._done(run, decision, now)

    def locked_out(self, run: DocumentRun, now: int, reason: str) -> None:
        self._events.emit(
            "document.locked_out",
            now,
            queue=self._queue,
            document_id=run.locked.id,
            nominal=run.locked.side.nominal,
            reason=reason,
        )

    def _done(self, run: DocumentRun, decision: Decision, now: int) -> None:
        if self._events.wants("document.done"):
            self._events.emit(
                "document.done",
                now,
                queue=self._queue,
                document_id=run.locked.id,
                nominal=run.locked.side.nominal,
                started_at=run.started_at,
                next_at=decision.sleep_until if isinstance(decision, Update) else None,
                is_removed=isinstance(decision, Remove),
            )

    def _failed(self, run: DocumentRun, decision: Decision, error: str, now: int) -> None:
        self._events.emit(
            "document.failed",
            now,
            queue=self._queue,
            document_id=run.locked.id,
            nominal=run.locked.side.nominal,
            started_at=run.started_at,
            failures=run.locked.side.failures + 1,
            error=error,
            retry_at=decision.sleep_until if isinstance(decision, Update) else None,
        )
        self._on_error(run.error if run.error is not None else BadDocument(error), run.locked.document)

    def _passed_its_end(self, run: DocumentRun, now: int) -> None:
        self._events.emit(
            "document.ended", now, queue=self._queue, document_id=run.locked.id, nominal=run.locked.side.nominal
        )
