"""Adding plain jobs, the most common ones by far: one insert, which alone decides; the rest goes along unanswered.

What plain requests differ in is put around bytes that the model's own job was encoded to, so that the model alone says
what a request becomes. If a server or an application dies right after the insert, the notification and the counters
are missing: polling and upkeep make up for them.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from struct import Struct as Layout
from typing import TYPE_CHECKING

import bson
from pymongo.errors import OperationFailure

from rota.failpoints import reach
from rota.model.job import NewJob, accept, is_plain
from rota.model.state import State
from rota.store.contract import Added
from rota.store.mongo import counters
from rota.store.mongo.documents import document_of_new
from rota.store.mongo.faults import of_writes
from rota.store.mongo.wire import SAFE, SENT, Command
from rota.store.shared.counting import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.gate import Gate
    from rota.store.mongo.space import Space

MOST_BYTES = 16 << 20  # in one message: a server takes 48 MB
MOST_KINDS = 256  # of jobs, that are remembered
DUPLICATE = 11000

_length = Layout("<i")
_whole = Layout("<q")
_ID = b"\x02_id\0"
_PAYLOAD = b"\x05payload\0"
_OWN = {"_id", "payload"}
_SOME_TIME = int.from_bytes(b"\xff\xfe\xff\xfe\xff\xfe\xff\x7e", "little")  # no text has such bytes


class Intake:
    """Adds plain jobs of one namespace to a server of one."""

    def __init__(self, connection: Connection, gate: Gate, rows: Counters) -> None:
        self._connection = connection
        self._gate = gate
        self._rows = rows
        self._encoder = Encoder()

    def takes(self, jobs: Sequence[NewJob]) -> bool:
        """Whether these are jobs for here."""
        if self._connection.has_transactions or not jobs or not all(map(is_plain, jobs)):
            return False
        if len({new.id for new in jobs}) != len(jobs):
            return False
        return sum(len(new.payload) for new in jobs) < MOST_BYTES

    def add(self, jobs: Sequence[NewJob], now: int | None) -> set[str] | None:
        """Insert them; None where all are in, else the ids of those that are: others are there already."""
        with self._gate.pass_through():
            space = self._connection.space
            documents = self._encoder.documents(jobs, self._gate.now() if now is None else now)
            insert = {"insert": space.jobs.name, "ordered": False, "writeConcern": SAFE}
            reach("add.before_commit")
            lost = self._write(Command(insert, "documents", documents), jobs)
            reach("add.after_commit")
            return {new.id for new in jobs if new.id not in lost} if lost else None

    def _write(self, insert: Command, jobs: Sequence[NewJob]) -> set[str]:
        """Insert them, notify, and count; the ids of those that are there already, which were counted for nothing."""
        space = self._connection.space
        notification = {"insert": space.notifications.name, "documents": [{"channel": "jobs"}], "writeConcern": SENT}
        counts = self._counts(space, jobs, 1)
        try:
            (answer,) = self._connection.wire.ask(insert, then=(Command(notification), counts))
        except OperationFailure:
            self._connection.wire.tell(self._counts(space, jobs, -1))
            raise
        lost = [jobs[error["index"]] for error in answer.get("writeErrors", ())]
        if lost:
            self._connection.wire.tell(self._counts(space, lost, -1))
        if any(error.get("code") != DUPLICATE for error in answer.get("writeErrors", ())):
            raise of_writes(answer)
        return {new.id for new in lost}

    def _counts(self, space: Space, jobs: Sequence[NewJob], sign: int) -> Command:
        counts = Counts()
        for queue, number in Counter(new.queue for new in jobs).items():
            counts.add(queue, State.QUEUED, sign * number)
        return counters.command(space, self._rows.updates(counts))


def all_added(jobs: Iterable[NewJob]) -> list[Added]:
    return [Added(new.id) for new in jobs]


class Encoder:
    """Documents of plain jobs. What many have alike is encoded once, with a gap for the time."""

    def __init__(self) -> None:
        self._rests: dict[tuple[str, str, int], list[bytes]] = {}

    def documents(self, jobs: Sequence[NewJob], now: int) -> list[bytes]:
        """Of jobs that are accepted at one instant."""
        at = _whole.pack(now)
        rests = {kind: at.join(self._rest(*kind)) for kind in {_kind(new) for new in jobs}}
        return [_document(new, rests[_kind(new)]) for new in jobs]

    def _rest(self, task: str, queue: str, priority: int) -> list[bytes]:
        """What a document says beside its own id and payload, up to its end, cut wherever the time stands."""
        kind = (task, queue, priority)
        rest = self._rests.get(kind)
        if rest is None:
            if len(self._rests) >= MOST_KINDS:
                self._rests.clear()
            new = NewJob(id="", task=task, payload=b"", queue=queue, priority=priority)
            fields = document_of_new(accept(new, _SOME_TIME))
            encoded = bson.encode({name: fields[name] for name in fields if name not in _OWN})
            rest = self._rests[kind] = encoded[_length.size :].split(_whole.pack(_SOME_TIME))
        return rest


_kind = attrgetter("task", "queue", "priority")


def _document(new: NewJob, rest: bytes) -> bytes:
    name = new.id.encode()
    parts = (
        *(_ID, _length.pack(len(name) + 1), name, b"\0"),
        *(_PAYLOAD, _length.pack(len(new.payload)), b"\0", new.payload),
        rest,
    )
    document = b"".join(parts)
    return _length.pack(_length.size + len(document)) + document
