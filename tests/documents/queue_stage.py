"""A queue on documents in memory, and what it did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.documents import DocumentQueue, MemorySource
from rota.errors import StoreUnavailable
from rota.testing.document_suite.stage import wait_for

__all__ = ["Flaky", "a_queue", "ago", "document", "run_until", "wait_for"]


def ago(seconds):
    return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)


def document(wanted=1, late=10, **fields):
    return {"_id": wanted, "sleepUntil": ago(late), **fields}


def a_queue(documents, handler=lambda _document: None, **options):
    source = options.pop("source", None) or MemorySource(documents)
    return DocumentQueue(source, handler, **options)


def run_until(queue, fact):
    """Start a queue, wait for a fact, and stop it."""
    with queue:
        wait_for(fact)


class Flaky(MemorySource):
    """A source whose server goes away on command."""

    fails = ()
    calls = 0

    def lock_next(self, *args):
        self.calls += 1
        self._fail("lock_next")
        return super().lock_next(*args)

    def update(self, updates):
        self._fail("update")
        return super().update(updates)

    def renew(self, locked, lock_for):
        self._fail("renew")
        return super().renew(locked, lock_for)

    def _fail(self, verb):
        if verb in self.fails:
            raise StoreUnavailable("the server is away")
