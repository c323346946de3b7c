"""Reports what became of documents to the observers and the user's hook: one event for each."""

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

    def _emit(self, event: str, run: DocumentRun, at: int, **more: Any) -> None:
        locked = run.locked
        self._events.emit(event, at, queue=self._queue, document_id=locked.id, nominal=locked.side.nominal, **more)

    def started(self, run: DocumentRun) -> None:
        if self._events.wants("document.started"):
            self._emit("document.started", run, run.started_at, failures=run.locked.side.failures)

    def ended(self, run: DocumentRun, decision: Decision, now: int) -> None:
        """A run has ended, and what became of the document was written."""
        match run.outcome:
            case Failed(error=error):
                self._failed(run, decision, error, now)
            case Ended():
                self._emit("document.ended", run, now)
            case _:
                self._done(run, decision, now)

    def locked_out(self, run: DocumentRun, now: int, reason: str) -> None:
        self._emit("document.locked_out", run, now, reason=reason)

    def _done(self, run: DocumentRun, decision: Decision, now: int) -> None:
        if self._events.wants("document.done"):
            next_at = decision.sleep_until if isinstance(decision, Update) else None
            is_removed = isinstance(decision, Remove)
            self._emit("document.done", run, now, started_at=run.started_at, next_at=next_at, is_removed=is_removed)

    def _failed(self, run: DocumentRun, decision: Decision, error: str, now: int) -> None:
        self._emit(
            "document.failed",
            run,
            now,
            started_at=run.started_at,
            failures=run.locked.side.failures + 1,
            error=error,
            retry_at=decision.sleep_until if isinstance(decision, Update) else None,
        )
        self._on_error(run.error if run.error is not None else BadDocument(error), run.locked.document)
