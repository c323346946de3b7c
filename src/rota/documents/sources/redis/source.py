"""Makes hashes of a Redis server a source of documents.

`{prefix}:doc:ID` is a document. `{prefix}:due` is the index: ids by the time at which they are looked at next. Every
change of a document's state is one script. The hash is what counts: a script that finds another time in the hash than
in the index mends the index.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rota.documents.contract import (
    MOST_READ,
    Batch,
    DocumentFacts,
    Finding,
    Listed,
    LockedDocument,
    Source,
    Terms,
    Update,
    Verdict,
    Written,
    document_facts,
    listed,
)
from rota.documents.fields import Fields
from rota.documents.sources.redis.codec import (
    document_of,
    field_text,
    id_of,
    instant_of,
    quoted,
    side_of,
    side_text,
    terms_of,
    terms_texts,
)
from rota.documents.sources.redis.connection import Connection, decoded, packed
from rota.documents.sources.server_clock import ServerClock
from rota.errors import BadOption
from rota.model.micros import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rota.documents.sources.redis.connection import Client

Document = dict[str, Any]
Locked = LockedDocument[Document]

APPLIED: Written[Document] = Written(verdict=Verdict.APPLIED)
LOST: Written[Document] = Written(verdict=Verdict.LOST)
PAGE = 500  # documents that are read or written in one call


class RedisSource(Source[Document]):
    """`RedisSource("redis://…", "orders")`: documents are hashes under `{orders}:doc:ID`.

    Times are whole milliseconds since 1970. An empty `sleepUntil` means that the document is done. The handler gets a
    dictionary of texts with the id under `key`, or what `to_document` makes of it. An id that is written like a whole
    number is one. An owner writes documents by `put` and `delete`, or by two commands with the same number:
    `HSET {orders}:doc:17 sleepUntil 1769850000000` and `ZADD {orders}:due 1769850000000 17`.
    """

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        fields: Fields | None = None,
        key: str = "id",
        condition: Mapping[str, str | int] | None = None,
        to_document: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.name = prefix
        self._fields = fields or Fields()
        self._paths = [
            self._fields.sleep_until,
            self._fields.interval,
            self._fields.repeat_until,
            self._fields.auto_remove,
            self._fields.locked_until or "",
            self._fields.locked_by or "",
        ]
        self._connection = Connection(client, prefix, self._paths)
        self._wanted = {name: str(value) for name, value in (condition or {}).items()}
        self._condition = packed([list(pair) for pair in self._wanted.items()])
        self._key = key
        self._to_document = to_document or (lambda found: found)
        self._clock = ServerClock(self._ask, step=MILLISECOND)
        self._locks = count(1)
        self._process = uuid4().hex[:12]

    def now(self) -> int:
        return self._clock.now()

    def _ask(self) -> int:
        seconds, micros = self._connection.clock()
        return seconds * SECOND + micros

    def close(self) -> None:
        self._connection.close()

    # The owner's writes.

    def put(self, document_id: Any, fields: Mapping[str, Any]) -> None:
        """Add a document, or change fields of one, and its index entry. Times are aware datetimes."""
        if not fields:
            raise BadOption("put() needs at least one field: a hash without fields does not exist")
        flat = [text for name, value in fields.items() for text in (name, field_text(name, value))]
        self._connection.call("put", packed([[str(document_id), flat]]))

    def delete(self, document_id: Any) -> None:
        """Delete a document, its index entry, and its side record."""
        self._connection.call("delete", packed([str(document_id)]))

    # Locks.

    def lock_next(self, limit: int, lock_for: int, horizon: int) -> Batch[Document]:
        token = f"{socket.gethostname()}:{os.getpid()}:{self._process}:{next(self._locks)}".replace(" ", "_")
        numbers = (limit, max(lock_for // MILLISECOND, 1), horizon // MILLISECOND)
        reply = self._connection.call("lock", *map(str, numbers), token, self._condition)
        now, until, found, after = reply
        ends = int(until) * MILLISECOND
        locked = [self._locked(one, ends, token) for one in found]
        next_due = int(float(after)) * MILLISECOND if after else None
        return Batch(now=int(now) * MILLISECOND, documents=locked, next_due=next_due)

    def _locked(self, found: Sequence[Any], until: int, token: str) -> Locked:
        terms = terms_of([decoded(text) for text in found[1:5]])
        return LockedDocument(
            id=id_of(decoded(found[0])),
            document=self._document(found[0], found[6]),
            terms=terms,
            side=side_of(decoded(found[5]), terms.sleep_until or 0),
            locked_until=until,
            token=token,
        )

    def _document(self, document_id: Any, flat: Sequence[Any]) -> Any:
        return self._to_document(document_of(self._key, id_of(decoded(document_id)), flat))

    def renew(self, locked: Sequence[Locked], lock_for: int) -> list[Locked | None]:
        if not locked:
            return []
        entries = packed([[str(one.id), one.token] for one in locked])
        replies = self._connection.call("renew", entries, str(max(lock_for // MILLISECOND, 1)))
        return [
            replace(one, locked_until=int(until) * MILLISECOND) if until else None
            for one, until in zip(locked, replies, strict=True)
        ]

    # Ends.

    def update(self, updates: Sequence[Update[Document]]) -> list[Written[Document]]:
        return self._write([one.locked for one in updates], updates) if updates else []

    def remove(self, locked: Sequence[Locked]) -> list[Written[Document]]:
        return self._write(locked, [None] * len(locked)) if locked else []

    def _write(self, locked: Sequence[Locked], updates: Sequence[Update[Document] | None]) -> list[Written[Document]]:
        entries = [self._entry(one, update) for one, update in zip(locked, updates, strict=True)]
        replies = self._connection.call("write", packed(entries))
        return [self._written(one, reply) for one, reply in zip(locked, replies, strict=True)]

    def _entry(self, locked: Locked, update: Update[Document] | None) -> list[str]:
        common = [str(locked.id), locked.token, *terms_texts(locked.terms)]
        if update is None:
            return ["remove", *common, "", ""]
        if update.keeps_schedule:
            return ["keep", *common, "", ""]
        new = "" if update.sleep_until is None else str(-(-update.sleep_until // MILLISECOND))
        return ["update", *common, new, "" if update.side is None else side_text(update.side)]

    def _written(self, locked: Locked, reply: Sequence[Any]) -> Written[Document]:
        verdict = decoded(reply[0])
        if verdict != "changed":
            return APPLIED if verdict == "applied" else LOST
        terms: Terms = terms_of([decoded(text) for text in reply[1:5]])
        if not self._fields.has_lock:
            terms = replace(terms, sleep_until=locked.terms.sleep_until)
        fresh = replace(locked, document=self._document(str(locked.id), reply[5]), terms=terms)
        return Written(verdict=Verdict.CHANGED, fresh=fresh)

    # Lists and checks.

    def check(self) -> list[Finding]:
        """Read all documents, and report what is not a time, and what is not in the index."""
        wrong: list[Finding] = []
        lost: list[tuple[str, int]] = []
        for ids in self._pages():
            for id_, value, at, score in self._places(ids):
                if at is None and value:
                    wrong.append(self._not_a_time(id_, value))
                elif at is not None and (score is None or score > at):
                    lost.append((id_, at))
        return wrong[:1] + ([self._not_indexed(lost)] if lost else [])

    def prepare(self) -> list[str]:
        """Put documents into the index that it does not know."""
        lost = [
            id_
            for ids in self._pages()
            for id_, _, at, score in self._places(ids)
            if at is not None and (score is None or score > at)
        ]
        for start in range(0, len(lost), PAGE):
            self._connection.call("put", packed([[id_, []] for id_ in lost[start : start + PAGE]]))
        return [f"added {len(lost)} documents to the index {self._connection.root}due"] if lost else []

    def _pages(self) -> list[list[str]]:
        ids = iter(sorted(set(self._connection.document_ids())))
        return list(iter(lambda: list(islice(ids, PAGE)), []))

    def _places(self, ids: list[str]) -> list[tuple[str, str, int | None, int | None]]:
        """Of each document: its id, the text of its time, the time at which it is due or its lock ends, its score."""
        root, fields = self._connection.root, self._fields
        paths = [fields.sleep_until, *([fields.locked_until] if fields.locked_until else [])]
        commands = [
            command for id_ in ids for command in (["HMGET", f"{root}doc:{id_}", *paths], ["ZSCORE", f"{root}due", id_])
        ]
        replies = self._connection.many(commands)
        found: list[tuple[str, str, int | None, int | None]] = []
        for id_, values, score in zip(ids, replies[::2], replies[1::2], strict=True):
            if isinstance(values, Exception):
                found.append((id_, f"a key that holds no hash ({values})", None, None))
                continue
            times = [instant_of(decoded(value)) for value in values if value is not None]
            at = max((time for time in times if time is not None), default=None)
            is_timed = values[0] is not None and instant_of(decoded(values[0])) is not None
            place = None if score is None else int(float(score)) * MILLISECOND
            found.append((id_, decoded(values[0] or b""), at if is_timed else None, place))
        return found

    def _not_a_time(self, id_: str, value: str) -> Finding:
        return Finding(
            kind="not-a-time",
            message=f"{self._fields.sleep_until} of {id_!r} is {value!r}, which is not a time; such documents do not "
            "run. Write whole milliseconds since 1970, or an empty text for a document that is done",
            is_error=True,
        )

    def _not_indexed(self, lost: list[tuple[str, int]]) -> Finding:
        (id_, at), index = lost[0], f"{self._connection.root}due"
        return Finding(
            kind="not-indexed",
            message=f"the index {index} lacks {len(lost)} documents, or has a later time for them, such as {id_!r}; "
            "they do not run in time. `prepare()` adds them",
            command=f"ZADD {index} {at // MILLISECOND} {quoted(id_)}",
            is_error=True,
        )

    def search(self, limit: int, state: str | None = None) -> Listed:
        """As in the contract. Documents that are done are not in the index, so all documents are read for them."""
        return listed(self._pages_of(state), limit, state)

    def find(self, wanted: Any) -> DocumentFacts | None:
        return next(iter(self._all_facts([str(wanted)], self.now())), None)

    def _pages_of(self, state: str | None) -> Iterator[list[DocumentFacts] | None]:
        now = self.now()
        if state != "done":
            yield from self._indexed(state, now)
        if state in (None, "done"):
            ids = list(islice(self._connection.document_ids(), MOST_READ))
            for some in self._batches(dict.fromkeys(ids)):  # a scan may name a key twice
                yield [one for one in self._all_facts(some, now) if one.state == "done"]
            if len(ids) == MOST_READ:
                yield None

    def _indexed(self, state: str | None, now: int) -> Iterator[list[DocumentFacts]]:
        """The documents of the index, a page at a time; of retries, those that Rota remembers."""
        root, at = self._connection.root, str(now // MILLISECOND)
        if state == "retrying":
            for ids in self._batches(self._connection.remembered()):
                yield sorted(self._all_facts(ids, now), key=lambda one: one.sleep_until or 0)
            return
        least, most = {"due": ("-inf", at), "waiting": (f"({at}", "+inf"), "running": (f"({at}", "+inf")}.get(
            state or "", ("-inf", "+inf")
        )
        for start in count(0, PAGE):
            command = ["ZRANGEBYSCORE", f"{root}due", least, most, "LIMIT", str(start), str(PAGE)]
            (members,) = self._connection.many([command])
            if not members:
                return
            facts = [
                one for one in self._all_facts([decoded(member) for member in members], now) if one.state != "done"
            ]
            yield sorted(facts, key=lambda one: one.sleep_until or 0)

    def _all_facts(self, ids: Sequence[str], now: int) -> list[DocumentFacts]:
        """The facts of those documents that exist, carry a schedule, and fit the condition."""
        root = self._connection.root
        commands = [
            command for id_ in ids for command in (["HGETALL", f"{root}doc:{id_}"], ["HGET", f"{root}side", id_])
        ]
        replies = self._connection.many(commands)
        return [
            self._facts(id_, document, decoded(kept or b""), now)
            for id_, flat, kept in zip(ids, replies[::2], replies[1::2], strict=True)
            if not isinstance(flat, Exception) and self._is_job(document := document_of("", None, flat))
        ]

    def _is_job(self, document: dict[str, Any]) -> bool:
        text = document.get(self._fields.sleep_until)
        fits = all(document.get(name) == value for name, value in self._wanted.items())
        return fits and text is not None and (text == "" or instant_of(text) is not None)

    def _batches(self, ids: Iterable[str]) -> Iterator[list[str]]:
        left = iter(ids)
        return iter(lambda: list(islice(left, PAGE)), [])

    def _facts(self, id_: str, found: dict[str, Any], kept: str, now: int) -> DocumentFacts:
        fields = self._fields
        at = instant_of(found.get(fields.sleep_until, ""))
        shown, _, rest = kept.partition(" ")
        token, _, body = rest.partition(" ")
        counts = at is not None and instant_of(shown) == at
        side = side_of(body if counts else "", at or 0)
        until, by = None, ""
        if fields.locked_until is not None and fields.locked_by is not None:
            until, by = instant_of(found.get(fields.locked_until, "")), found.get(fields.locked_by, "")
        elif counts and token != "-":  # noqa: S105 - it says that the record is of no lock
            until, by = at, token
        interval = found.get(fields.interval) or None
        return document_facts(id_of(id_), at, side, interval=interval, locked_by=by, locked_until=until, now=now)
