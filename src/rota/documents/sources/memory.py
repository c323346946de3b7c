"""Keeps documents in a list of dictionaries in this process: for tests, and as the shortest example of a source."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from rota.clock import utc_micros
from rota.documents.contract import (
    Batch,
    DocumentFacts,
    Finding,
    Listed,
    LockedDocument,
    SideRecord,
    Source,
    Terms,
    Update,
    Verdict,
    Written,
    document_facts,
    listed,
    texts_meant,
)
from rota.documents.fields import MISSING, Fields, get_path, set_path, unset_path
from rota.model.micros import MILLISECOND, datetime_of, micros_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Document = dict[str, Any]

APPLIED: Written[Document] = Written(verdict=Verdict.APPLIED)
LOST: Written[Document] = Written(verdict=Verdict.LOST)


class MemorySource(Source[Document]):
    """`MemorySource([{"_id": 1, "sleepUntil": …}, …])`: the list stays the caller's, who may change it at any time.

    The caller's changes to one document should be single assignments, or be made under `source.lock`.
    """

    def __init__(
        self,
        documents: list[Document],
        *,
        fields: Fields | None = None,
        condition: Callable[[Document], bool] | None = None,
        name: str = "memory",
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.name = name
        self.documents = documents
        self.lock = threading.RLock()
        self._fields = fields or Fields()
        self._condition = condition
        self._clock = clock or utc_micros
        self._sides: list[_Kept] = []
        self._tokens = count(1)
        self._process = uuid4().hex[:8]

    def share(self, other: MemorySource) -> None:
        """Use the same locks and side records as another source of the same list, like two handles on one server."""
        self.lock, self._sides, self._tokens = other.lock, other._sides, other._tokens

    def now(self) -> int:
        return self._clock()

    def lock_next(self, limit: int, lock_for: int, horizon: int) -> Batch[Document]:
        with self.lock:
            now = self.now()
            free = sorted(
                (found for found in self._sleepers() if not self._is_locked(found[1], now)), key=lambda found: found[0]
            )
            due = [document for at, document in free if at <= now][:limit]
            later = [at for at, _ in free if now < at <= now + horizon]
            locked = [self._locked(document, now + lock_for) for document in due]
        return Batch(now=now, documents=locked, next_due=min(later, default=None))

    def update(self, updates: Sequence[Update[Document]]) -> list[Written[Document]]:
        with self.lock:
            return [self._update(update) for update in updates]

    def remove(self, locked: Sequence[LockedDocument[Document]]) -> list[Written[Document]]:
        with self.lock:
            return [self._remove(one) for one in locked]

    def renew(self, locked: Sequence[LockedDocument[Document]], lock_for: int) -> list[LockedDocument[Document] | None]:
        with self.lock:
            return [self._renew(one, lock_for) for one in locked]

    def adopt(self, limit: int) -> list[LockedDocument[Document]]:
        with self.lock:
            now = self.now()
            found = [document for document in self._wanted() if self._never_started(document, now)][:limit]
            return [self._locked(document, now + 60_000 * MILLISECOND) for document in found]

    def check(self) -> list[Finding]:
        found = []
        with self.lock:
            for document in self.documents:
                if self._fields.are_blocked_in(document):
                    message = f"a path leads through a list or a plain value in {_id(document)!r}; it does not run"
                    found.append(Finding(kind="path-through-list", message=message, is_error=True))
                    continue
                at = get_path(document, self._fields.sleep_until)
                if at is not MISSING and at is not None and not _is_time(at):
                    message = f"{self._fields.sleep_until} of {_id(document)!r} is {at!r}, which is not a time"
                    found.append(Finding(kind="not-a-time", message=message, is_error=True))
        return found

    def prepare(self) -> list[str]:
        return []

    def search(self, limit: int, state: str | None = None) -> Listed:
        with self.lock:
            now = self.now()
            facts = [self._facts(document, now) for document in self._wanted() if self._is_scheduled(document)]
        chosen = [one for one in facts if state is None or one.state == state]
        return listed([sorted(chosen, key=lambda one: (one.sleep_until is None, one.sleep_until or 0))], limit, state)

    def find(self, wanted: Any) -> DocumentFacts | None:
        with self.lock:
            chosen = [one for one in self._wanted() if self._is_scheduled(one)]
            for meant in (*texts_meant(wanted), str(wanted)):
                for one in chosen:
                    if _id(one) == meant or (meant is not wanted and str(_id(one)) == meant):
                        return self._facts(one, self.now())
        return None

    # Reading documents.

    def _wanted(self) -> list[Document]:
        return [one for one in self.documents if self._condition is None or self._condition(one)]

    def _sleepers(self) -> list[tuple[int, Document]]:
        """Documents whose field holds a time."""
        return [(at, one) for one in self._wanted() if (at := self._sleep_until(one)) is not None]

    def _sleep_until(self, document: Document) -> int | None:
        if self._fields.are_blocked_in(document):
            return None
        at = get_path(document, self._fields.sleep_until)
        return _micros(at) if _is_time(at) else None

    def _lock_of(self, document: Document) -> tuple[int | None, str]:
        """When the lock ends and whose it is, if it has fields of its own."""
        fields = self._fields
        if fields.locked_until is None or fields.locked_by is None or fields.are_blocked_in(document):
            return None, ""
        until, by = get_path(document, fields.locked_until), get_path(document, fields.locked_by)
        return (_micros(until) if _is_time(until) else None), by or ""

    def _is_locked(self, document: Document, now: int) -> bool:
        until, _ = self._lock_of(document)
        return until is not None and until > now

    def _is_scheduled(self, document: Document) -> bool:
        if self._fields.are_blocked_in(document):
            return False
        at = get_path(document, self._fields.sleep_until)
        return at is None or _is_time(at)

    def _never_started(self, document: Document, now: int) -> bool:
        if self._fields.are_blocked_in(document):
            return False
        at = get_path(document, self._fields.sleep_until)
        interval = get_path(document, self._fields.interval)
        return at is MISSING and isinstance(interval, str) and bool(interval) and not self._is_locked(document, now)

    def _terms(self, document: Document, sleep_until: int | None) -> Terms:
        fields = self._fields
        return Terms(
            sleep_until=sleep_until,
            interval=_value(document, fields.interval),
            repeat_until=_value(document, fields.repeat_until),
            auto_remove=_value(document, fields.auto_remove),
        )

    def _find(self, wanted: object) -> Document | None:
        return next((one for one in self.documents if _id(one) == wanted), None)

    # Locks.

    def _locked(self, document: Document, until: int) -> LockedDocument[Document]:
        at = self._sleep_until(document)
        terms = self._terms(document, at)
        kept = self._side(_id(document), at)
        side = kept.side if kept else SideRecord(nominal=self.now() if at is None else at)
        token = f"{self._process}:{next(self._tokens)}"
        fields = self._fields
        if fields.locked_until is not None and fields.locked_by is not None:
            set_path(document, fields.locked_until, datetime_of(until))
            set_path(document, fields.locked_by, token)
        else:
            until += next(self._tokens)  # two locks of one document never show the same time
            self._sides.append(_Kept(_id(document), until, side, token))
            set_path(document, fields.sleep_until, datetime_of(until))
        return LockedDocument(
            id=_id(document),
            document=copy.deepcopy(document),
            terms=terms,
            side=side,
            locked_until=until,
            token=token,
        )

    def _holds(self, document: Document, locked: LockedDocument[Document]) -> bool:
        if self._fields.has_lock:
            return self._lock_of(document)[1] == locked.token
        kept = self._side(locked.id, self._sleep_until(document))
        return kept is not None and kept.token == locked.token

    def _fresh(self, document: Document, locked: LockedDocument[Document]) -> LockedDocument[Document]:
        at = self._sleep_until(document) if self._fields.has_lock else locked.terms.sleep_until
        return replace(locked, document=copy.deepcopy(document), terms=self._terms(document, at))

    def _judge(self, locked: LockedDocument[Document]) -> tuple[Document | None, Written[Document]]:
        """The document if a write may happen, and the reply if not."""
        document = self._find(locked.id)
        if document is None or not self._holds(document, locked):
            return None, LOST
        fresh = self._fresh(document, locked)
        if fresh.terms != locked.terms:
            return None, Written(verdict=Verdict.CHANGED, fresh=fresh)
        return document, APPLIED

    def _update(self, update: Update[Document]) -> Written[Document]:
        document, reply = self._judge(update.locked)
        if document is None:
            return reply
        self._forget(update.locked)
        if not update.keeps_schedule:
            at = update.sleep_until
            set_path(document, self._fields.sleep_until, None if at is None else datetime_of(at))
            if update.side is not None and at is not None:
                self._sides.append(_Kept(update.locked.id, at, update.side))
        self._free(document)
        return reply

    def _remove(self, locked: LockedDocument[Document]) -> Written[Document]:
        document, reply = self._judge(locked)
        if document is not None:
            self._forget(locked)
            self.documents.remove(document)
        return reply

    def _renew(self, locked: LockedDocument[Document], lock_for: int) -> LockedDocument[Document] | None:
        document = self._find(locked.id)
        if document is None or not self._holds(document, locked):
            return None
        until = self.now() + lock_for
        if self._fields.locked_until is not None:
            set_path(document, self._fields.locked_until, datetime_of(until))
            return replace(locked, locked_until=until)
        until += next(self._tokens)
        self._forget(locked)
        self._sides.append(_Kept(locked.id, until, locked.side, locked.token))
        set_path(document, self._fields.sleep_until, datetime_of(until))
        return replace(locked, locked_until=until)

    def _free(self, document: Document) -> None:
        for path in (self._fields.locked_until, self._fields.locked_by):
            if path is not None:
                unset_path(document, path)

    # Side records.

    def _side(self, wanted: object, at: int | None) -> _Kept | None:
        return next((kept for kept in self._sides if kept.id == wanted and kept.at == at), None)

    def _forget(self, locked: LockedDocument[Document]) -> None:
        self._sides[:] = [kept for kept in self._sides if kept.id != locked.id]

    def _facts(self, document: Document, now: int) -> DocumentFacts:
        at = self._sleep_until(document)
        kept = self._side(_id(document), at)
        side = kept.side if kept else SideRecord(nominal=at or 0)
        until, by = self._lock_of(document)
        if kept is not None and kept.token:
            until = at
        interval = _value(document, self._fields.interval) or None
        return document_facts(_id(document), at, side, interval=interval, locked_by=by, locked_until=until, now=now)


class _Kept(NamedTuple):
    """A side record, and the time under which it counts."""

    id: Any
    at: int
    side: SideRecord
    token: str = ""  # of the lock, if the time is one and not a retry


def _id(document: Document) -> Any:
    return document.get("_id")


def _is_time(value: object) -> bool:
    return isinstance(value, datetime) and value.utcoffset() is not None


def _value(document: Document, path: str) -> Any:
    """A field as the rules want it: None if it is missing."""
    value = get_path(document, path)
    return None if value is MISSING else value


def _micros(at: datetime) -> int:
    return micros_of(at)
