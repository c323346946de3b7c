"""Defines what the author of a source writes for the suite, and the steps that its tests are written in."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from rota.model.micros import MILLISECOND, SECOND, datetime_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rota.documents.contract import LockedDocument, Source

MINUTE = 60 * SECOND
LONG = 600 * SECOND  # a lock that lasts longer than any test
BRIEF = MILLISECOND  # a lock that has expired at the next call
PATIENCE = 60.0  # seconds until something must be true on a busy machine


class Stage(ABC):
    """The owner's side of the documents.

    A document is a dictionary with `_id` (a text or a whole number), `sleepUntil`, `interval`, `repeatUntil` and
    `autoRemove` (each may be left out), and two fields of the owner's: `kind` (text) and `payload` (a whole number).
    Times are aware datetimes with whole milliseconds. A table has columns for them under any names.
    """

    can_omit_fields = True  # a document may have no `sleepUntil`, which differs from null
    takes_any_value = True  # a field may hold a value of another type, such as a text for a time

    @abstractmethod
    def make_source(self, *, has_lock: bool, only_kind: str | None = None) -> Source[Any]:
        """A source of these documents. `only_kind`: only those whose `kind` is this."""

    @abstractmethod
    def insert(self, *documents: dict[str, Any]) -> None: ...

    @abstractmethod
    def read(self, wanted: Any) -> dict[str, Any] | None:
        """The document as the owner sees it, without fields that are missing or null; None if it is gone."""

    @abstractmethod
    def change(self, wanted: Any, **fields: Any) -> None:
        """Set fields of one document; None writes null."""

    @abstractmethod
    def delete(self, wanted: Any) -> None: ...


class CheckedSource:
    """A source, with the steps that the tests are written in."""

    def __init__(self, stage: Stage, source: Source[Any], *, has_lock: bool) -> None:
        self.stage = stage
        self.source = source
        self.has_lock = has_lock
        self.now = source.now() // SECOND * SECOND

    def at(self, seconds: float) -> datetime:
        """A time relative to the start of the test, in whole milliseconds."""
        return datetime_of(self.micros(seconds))

    def micros(self, seconds: float) -> int:
        return self.now + int(seconds * 1000) * MILLISECOND

    def due(self, wanted: Any, ago: float = 10, **fields: Any) -> Any:
        """Insert a document that has been due for so many seconds."""
        self.stage.insert({"_id": wanted, "sleepUntil": self.at(-ago), "kind": "wanted", "payload": 1, **fields})
        return wanted

    def lock(self, limit: int = 10, lock_for: int = LONG) -> list[LockedDocument[Any]]:
        return self.source.lock_next(limit, lock_for, MINUTE).documents

    def lock_one(self, lock_for: int = LONG) -> LockedDocument[Any]:
        (locked,) = self.lock(1, lock_for)
        return locked

    def lock_again(self, lock_for: int = LONG) -> LockedDocument[Any]:
        """Lock the document whose brief lock has expired, as soon as the server's clock says so."""
        found: list[LockedDocument[Any]] = wait_for(lambda: self.lock(1, lock_for))
        return found[0]

    def time_of(self, wanted: Any) -> datetime | None:
        document = self.stage.read(wanted)
        assert document is not None
        at: datetime | None = document.get("sleepUntil")
        return at


def wait_for(fact: Callable[[], Any]) -> Any:
    """Call it until it returns something true; the test fails if it never does."""
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        found = fact()
        if found:
            return found
        time.sleep(0.002)
    raise AssertionError("what the test waits for has not come true")
