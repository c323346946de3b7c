"""Makes a MongoDB collection a source of documents.

A batch is locked in three calls: the due documents by an index, one update that locks them by the server's clock, and
one read of those that this caller got. Ends are written in one bulk write. With four fields alone, side records are
written before the lock, and deleted after the end.
"""

from __future__ import annotations

import os
import random
import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pymongo import DeleteOne, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

from rota.documents.contract import (
    Batch,
    DocumentFacts,
    Finding,
    Listed,
    LockedDocument,
    SideRecord,
    Source,
    Update,
    Verdict,
    Written,
    listed,
)
from rota.documents.fields import Fields
from rota.documents.sources.mongo.checks import Checks
from rota.documents.sources.mongo.connection import Connection, Document, Documents
from rota.documents.sources.mongo.listing import Listing
from rota.documents.sources.mongo.queries import RETRIED, RETRY, Queries, ids_meant, ids_of, micros_in, time_of
from rota.documents.sources.mongo.side_records import Kept, SideRecords
from rota.documents.sources.refused import Refused
from rota.documents.sources.server_clock import ServerClock
from rota.errors import StoreError, StoreUnavailable
from rota.model.micros import MILLISECOND, datetime_of
from rota.store.mongo.faults import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Locked = LockedDocument[Document]

APPLIED: Written[Document] = Written(verdict=Verdict.APPLIED)
LOST: Written[Document] = Written(verdict=Verdict.LOST)
ATTEMPTS = 4  # to lock something, while other processes lock the same documents first
SPREAD = 4  # times as many documents as wanted, from which a caller that lost a race chooses at random


class MongoSource(Source[Document]):
    """`MongoSource(client.shop.orders, condition={"status": "open"})`, or a function that returns the collection."""

    def __init__(
        self,
        collection: Documents | Callable[[], Documents],
        *,
        fields: Fields | None = None,
        condition: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = Connection(collection)
        self._queries = Queries(fields or Fields(), condition)
        self._sides = SideRecords(self._connection)
        self._listing = Listing(self._queries, self._sides)
        self._clock = ServerClock(self._ask, step=MILLISECOND)
        self._locks = count(1)
        self._process = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:12]}"
        self._was_busy = False  # the last call locked something, so the next one probably will
        self._refused = Refused()

    @property
    def name(self) -> str:  # type: ignore[override]  # a property for a field
        return self._connection.name

    def now(self) -> int:
        return self._clock.now()

    def _ask(self) -> int:
        with self._connection.call() as documents:
            hello = documents.database.client.admin.command("hello")
        return micros_in(hello["localTime"]) or 0

    # Locks.

    def lock_next(self, limit: int, lock_for: int, horizon: int) -> Batch[Document]:
        with self._connection.call() as documents:
            if limit == 1 and self._was_busy and self._queries.fields.has_lock:
                now = self.now()
                oldest = self._queries.sleeping(now, now, without=self._refused.ids())
                query = {"$and": [oldest, *self._queries.still_due()]}
                with self._unless_refused():
                    if locked := self._lock_oldest(documents, query, lock_for):
                        return Batch(now=self.now(), documents=[locked])
            batch = self._lock_batch(documents, limit, lock_for, horizon)
        self._was_busy = bool(batch.documents)
        return batch

    def _lock_batch(self, documents: Documents, limit: int, lock_for: int, horizon: int) -> Batch[Document]:
        for attempt in range(ATTEMPTS):
            now = self.now()
            wanted = limit if attempt == 0 else limit * SPREAD
            found = self._sleeping(documents, now, now + horizon, wanted)
            due = [document for at, document in found if at <= now]
            if not due:
                return Batch(now=now, documents=[], next_due=min((at for at, _ in found), default=None))
            chosen = due[:limit] if attempt == 0 else random.sample(due, min(limit, len(due)))
            locked, refused = self._lock(documents, chosen, lock_for)
            if locked:
                return Batch(now=self.now(), documents=locked, refused=tuple(refused))
            if refused:
                raise refused[-1]
        return Batch(now=now, documents=[], next_due=now)  # others are faster: more may be due

    def _sleeping(self, documents: Documents, now: int, until: int, limit: int) -> list[tuple[int, Document]]:
        queries = self._queries
        fields = {"_id": 1, queries.fields.sleep_until: 1} if queries.fields.has_lock else None
        query = queries.sleeping(until, now, without=self._refused.ids())
        cursor = documents.find(query, fields).sort(queries.fields.sleep_until, 1).limit(limit)
        return [(queries.sleep_until(document) or 0, document) for document in cursor]

    def _lock(self, documents: Documents, due: list[Document], lock_for: int) -> tuple[list[Locked], list[StoreError]]:
        """Lock these documents, also if the server refuses some of them; and why it does."""
        if not self._queries.fields.has_lock:
            return self._lock_by_time(documents, due, lock_for)
        if len(due) == 1:
            return self._lock_one(documents, due[0]["_id"], lock_for)
        return self._lock_by_token(documents, [document["_id"] for document in due], lock_for)

    def _lock_one(self, documents: Documents, id_: Any, lock_for: int) -> tuple[list[Locked], list[StoreError]]:
        query = {"$and": [{"_id": {"$eq": id_}}, *self._queries.still_due()]}
        try:
            locked = self._lock_oldest(documents, query, lock_for)
        except OperationFailure as err:
            return [], [self._refuse(id_, self._refusal(err))]
        return [locked] if locked is not None else [], []

    def _refusal(self, err: OperationFailure) -> StoreError:
        """The error in Rota's words; it is raised if it is about the server, and not about a document."""
        fault = translate(err, f"the collection {self.name}")
        if isinstance(fault, StoreUnavailable):
            raise fault from err
        return fault

    def _refuse(self, id_: Any, fault: StoreError) -> StoreError:
        self._refused.add(id_)
        return StoreError(f"{self.name} does not let {id_!r} be locked: {fault}")

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """Continue after the refusal of an unknown document: the next call finds out which it is."""
        try:
            yield
        except OperationFailure as err:
            self._refusal(err)

    def _lock_oldest(self, documents: Documents, query: Document, lock_for: int) -> Locked | None:
        asked_at = time.monotonic()
        found = documents.find_one_and_update(
            query,
            self._queries.lock(self._token(), lock_for),
            sort=[(self._queries.fields.sleep_until, 1)],
            return_document=ReturnDocument.AFTER,
        )
        return None if found is None else self._read_locked([found], lock_for, asked_at)[0]

    def _lock_by_token(
        self, documents: Documents, ids: list[Any], lock_for: int
    ) -> tuple[list[Locked], list[StoreError]]:
        """Lock several at once: an update of all that are still free, then a read of those that got the token.

        If the server refuses one of them, some have the token, and the rest is locked one by one.
        """
        token, asked_at, was_refused = self._token(), time.monotonic(), False
        query = {"$and": [{"_id": {"$in": ids}}, *self._queries.still_due()]}
        try:
            if not documents.update_many(query, self._queries.lock(token, lock_for)).modified_count:
                return [], []
        except OperationFailure as err:
            self._refusal(err)
            was_refused = True
        holders = {"$in": [token, f"{token}{RETRIED}"]}
        mine = documents.find({"_id": {"$in": ids}, str(self._queries.fields.locked_by): holders})
        locked = self._read_locked(list(mine), lock_for, asked_at)
        refused: list[StoreError] = []
        for id_ in ids if was_refused else ():
            if not _is_among(id_, locked):
                more, why = self._lock_one(documents, id_, lock_for)
                locked, refused = [*locked, *more], [*refused, *why]
        return sorted(locked, key=lambda one: one.terms.sleep_until or 0), refused

    def _read_locked(self, found: list[Document], lock_for: int, asked_at: float) -> list[Locked]:
        """Documents as they are under the lock; side records are read only of those that may have one."""
        queries = self._queries
        times = [queries.sleep_until(document) for document in found]
        holders = [queries.lock_of(document) for document in found]
        may_have = [
            (document["_id"], at if by.endswith(RETRIED) else None)
            for document, at, (_, by) in zip(found, times, holders, strict=True)
        ]
        if found and holders[0][0] is not None:
            self._clock.sync(holders[0][0] - lock_for, asked_at)
        return [
            LockedDocument(
                id=document["_id"],
                document=document,
                terms=queries.terms(document, at),
                side=kept.side if kept else SideRecord(nominal=at or 0),
                locked_until=until or 0,
                token=by,
            )
            for document, at, (until, by), kept in zip(found, times, holders, self._sides.find(may_have), strict=True)
        ]

    def _lock_by_time(
        self, documents: Documents, due: list[Document], lock_for: int
    ) -> tuple[list[Locked], list[StoreError]]:
        """Lock with a time in `sleepUntil`. The side record is first, so that the nominal time cannot be lost."""
        queries, token = self._queries, self._token()
        until = self._lock_time(lock_for)
        times = [queries.sleep_until(document) or 0 for document in due]
        before = self._sides.find([(document["_id"], at) for document, at in zip(due, times, strict=True)])
        candidates = [
            LockedDocument(
                id=document["_id"],
                document=document,
                terms=queries.terms(document, at),
                side=kept.side if kept else SideRecord(nominal=at),
                locked_until=until,
                token=token,
            )
            for document, at, kept in zip(due, times, before, strict=True)
        ]
        added = self._sides.add([Kept(one.id, until, one.side, token) for one in candidates])
        mine = [one for one, is_added in zip(candidates, added, strict=True) if is_added]
        changes = [(one, one.terms.sleep_until or 0) for one in mine]
        refused: list[StoreError] = []
        try:
            locked = self._set_times(documents, changes, queries.still_due())
        except BulkWriteError as err:  # the others were written
            fault = self._refusal(err)
            refused = [self._refuse(mine[error["index"]].id, fault) for error in err.details["writeErrors"]]
            locked = self._were_set(documents, mine)
        got = [one for one, is_locked in zip(mine, locked, strict=True) if is_locked]
        self._sides.delete((one.id, until) for one, is_locked in zip(mine, locked, strict=True) if not is_locked)
        self._sides.delete((kept.id, kept.at) for kept in before if kept is not None and _is_among(kept.id, got))
        return got, refused

    def _set_times(self, documents: Documents, changes: list[tuple[Locked, int]], also: list[Document]) -> list[bool]:
        """Set `sleepUntil` from one exact time to the lock's; whether each was set."""
        if not changes:
            return []
        path = self._queries.fields.sleep_until
        writes = [
            UpdateOne(
                {"$and": [{"_id": {"$eq": one.id}, path: time_of(shown)}, *also]},
                {"$set": {path: datetime_of(one.locked_until)}},
            )
            for one, shown in changes
        ]
        if documents.bulk_write(writes, ordered=False).matched_count == len(changes):
            return [True] * len(changes)
        return self._were_set(documents, [one for one, _ in changes])

    def _were_set(self, documents: Documents, locked: list[Locked]) -> list[bool]:
        shown_now = self._shown(documents, ids_of(locked), {self._queries.fields.sleep_until: 1})
        return [
            (document := shown_now(one.id)) is not None and self._queries.sleep_until(document) == one.locked_until
            for one in locked
        ]

    def _token(self) -> str:
        return f"{self._process}:{next(self._locks)}"

    def _lock_time(self, lock_for: int) -> int:
        """A time for a lock. Random milliseconds make it unlikely that two locks of a document show the same."""
        until = self.now() + lock_for
        return until - until % MILLISECOND + random.randrange(100) * MILLISECOND  # noqa: S311 - not a secret

    # Ends.

    def update(self, updates: Sequence[Update[Document]]) -> list[Written[Document]]:
        if not updates:
            return []
        with self._connection.call() as documents:
            self._sides.put(
                [
                    Kept(one.locked.id, one.sleep_until, one.side)
                    for one in updates
                    if one.side is not None and one.sleep_until is not None
                ]
            )
            replies = self._write(documents, [one.locked for one in updates], list(updates))
            self._sides.delete(
                mark for one, reply in zip(updates, replies, strict=True) for mark in self._old_marks(one, reply)
            )
        return replies

    def remove(self, locked: Sequence[Locked]) -> list[Written[Document]]:
        if not locked:
            return []
        with self._connection.call() as documents:
            replies = self._write(documents, list(locked), [None] * len(locked))
            self._sides.delete(
                mark
                for one, reply in zip(locked, replies, strict=True)
                if reply is APPLIED
                for mark in self._marks(one)
            )
        return replies

    def _write(
        self, documents: Documents, locked: list[Locked], updates: Sequence[Update[Document] | None]
    ) -> list[Written[Document]]:
        """Write fenced updates, and removals where there is none."""
        queries = self._queries
        writes = [
            DeleteOne(queries.unchanged(one))
            if update is None
            else UpdateOne(
                queries.held(one) if update.keeps_schedule else queries.unchanged(one), queries.update(update)
            )
            for one, update in zip(locked, updates, strict=True)
        ]
        done = documents.bulk_write(writes, ordered=False)
        if done.matched_count + done.deleted_count == len(writes):
            return [APPLIED] * len(writes)
        return self._judge(documents, locked, updates)

    def _judge(
        self, documents: Documents, locked: list[Locked], updates: Sequence[Update[Document] | None]
    ) -> list[Written[Document]]:
        """Find which writes of a batch were refused, by the documents as they are now."""
        shown = self._shown(documents, ids_of(locked), self._queries.projection)
        is_alone = len(locked) == 1  # then it is the one that was refused
        replies = []
        for one, update in zip(locked, updates, strict=True):
            document = shown(one.id)
            if document is None:
                replies.append(LOST if update is not None or is_alone else APPLIED)
                continue
            if self._queries.fields.are_blocked_in(document):
                replies.append(LOST)
                continue
            held = self._held(document, one)
            if held is not None and (update is None or not update.keeps_schedule or held.token != one.token):
                at = self._queries.sleep_until(document) if self._queries.fields.has_lock else one.terms.sleep_until
                fresh = replace(held, document=document, terms=self._queries.terms(document, at))
                replies.append(Written(verdict=Verdict.CHANGED, fresh=fresh))
            elif is_alone or update is None or not self._is_written(document, update):
                replies.append(LOST)
            else:
                replies.append(APPLIED)
        return replies

    def _held(self, document: Document, locked: Locked) -> Locked | None:
        """The lock, if this document still has it."""
        if not locked.token:
            return None
        if self._queries.fields.has_lock:
            return locked if self._queries.lock_of(document)[1] == locked.token else None
        at = self._queries.sleep_until(document)
        if at == locked.locked_until:
            return locked
        (kept,) = self._sides.find([(locked.id, at)])  # a renewal may have got no reply
        return replace(locked, locked_until=kept.at) if kept is not None and kept.token == locked.token else None

    def _is_written(self, document: Document, update: Update[Document]) -> bool:
        at, (until, by) = self._queries.sleep_until(document), self._queries.lock_of(document)
        is_free = until is None and by in {"", RETRY}
        return is_free and (update.keeps_schedule or at == update.sleep_until)

    def _old_marks(self, update: Update[Document], reply: Written[Document]) -> list[tuple[Any, int | None]]:
        """The times whose side records count no more: before the update if it was written, else its own."""
        if reply is APPLIED:
            return [mark for mark in self._marks(update.locked) if mark[1] != update.sleep_until]
        return [(update.locked.id, update.sleep_until)] if update.side is not None else []

    def _marks(self, locked: Locked) -> list[tuple[Any, int | None]]:
        if not self._queries.fields.has_lock:
            return [(locked.id, locked.locked_until), (locked.id, locked.terms.sleep_until)]
        return [(locked.id, locked.terms.sleep_until)] if locked.token.endswith(RETRIED) else []

    def _shown(self, documents: Documents, ids: list[Any], fields: Document) -> Callable[[Any], Document | None]:
        """The documents as they are now, by their ids of any type."""
        found = list(documents.find({"_id": {"$in": ids}}, fields))
        return lambda wanted: next((one for one in found if _is_same(one["_id"], wanted)), None)

    # Renewals.

    def renew(self, locked: Sequence[Locked], lock_for: int) -> list[Locked | None]:
        if not locked:
            return []
        with self._connection.call() as documents:
            if self._queries.fields.has_lock:
                return self._renew_by_token(documents, list(locked), lock_for)
            return self._renew_by_time(documents, list(locked), lock_for)

    def _renew_by_token(self, documents: Documents, locked: list[Locked], lock_for: int) -> list[Locked | None]:
        by = str(self._queries.fields.locked_by)
        held = {"_id": {"$in": ids_of(locked)}, by: {"$in": list({one.token for one in locked})}}
        documents.update_many({"$and": [held, *self._queries.no_lists()]}, self._queries.renewal(lock_for))
        shown = self._shown(documents, ids_of(locked), self._queries.projection)
        return [self._renewed(shown(one.id), one) for one in locked]

    def _renewed(self, document: Document | None, locked: Locked) -> Locked | None:
        if document is None:
            return None
        until, by = self._queries.lock_of(document)
        return replace(locked, locked_until=until) if by == locked.token and until is not None else None

    def _renew_by_time(self, documents: Documents, locked: list[Locked], lock_for: int) -> list[Locked | None]:
        shown = self._shown(documents, ids_of(locked), {self._queries.fields.sleep_until: 1})
        held = [self._held(document, one) if (document := shown(one.id)) is not None else None for one in locked]
        until = self._lock_time(lock_for)
        mine = [(replace(one, locked_until=until), one.locked_until) for one in held if one is not None]
        self._sides.put([Kept(one.id, until, one.side, one.token) for one, _ in mine])
        was_set = iter(self._set_times(documents, mine, []))
        renewed = [replace(one, locked_until=until) if one is not None and next(was_set) else None for one in held]
        self._sides.delete(
            (one.id, one.locked_until)
            for one, now in zip(held, renewed, strict=True)
            if one is not None and now is not None and now.locked_until != one.locked_until
        )
        return renewed

    # The rest.

    def adopt(self, limit: int) -> list[Locked]:
        with self._connection.call() as documents:
            if not Checks(documents, self._queries).can_adopt():
                return []
            found = list(documents.find(self._queries.unscheduled()).limit(limit))
        now = self.now()
        return [
            LockedDocument(
                id=document["_id"],
                document=document,
                terms=self._queries.terms(document, None),
                side=SideRecord(nominal=now),
                locked_until=now,
            )
            for document in found
        ]

    def check(self) -> list[Finding]:
        with self._connection.call() as documents:
            return Checks(documents, self._queries).findings()

    def prepare(self) -> list[str]:
        with self._connection.call(deadline=None) as documents:  # an index of a large collection takes minutes
            return Checks(documents, self._queries).prepare(self._connection.sides)

    def search(self, limit: int, state: str | None = None) -> Listed:
        with self._connection.call() as documents:
            return listed(self._listing.pages(documents, limit, state, self.now()), limit, state)

    def find(self, wanted: Any) -> DocumentFacts | None:
        meant = ids_meant(wanted)
        with self._connection.call() as documents:
            found = list(documents.find(self._queries.scheduled(meant), self._queries.projection))
            if not found:
                return None
            # A time as an id may have come back with a zone; then it is the only one.
            chosen = next((one for id_ in meant for one in found if _is_same(one["_id"], id_)), found[0])
            return self._listing.facts_of([chosen], self.now())[0]


def _is_same(one: Any, other: Any) -> bool:
    """Whether two ids are the same for MongoDB, to which 1 and True are two."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _is_among(wanted: Any, locked: list[Locked]) -> bool:
    return any(_is_same(one.id, wanted) for one in locked)
