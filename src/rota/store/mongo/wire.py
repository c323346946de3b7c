"""The wire: commands in the server's own words, several at once, over connections that the driver has made.

The driver's own way to a command takes longer than the server's answer: it selects a server, borrows a connection,
begins a session and tells its listeners, each time. Here a connection that it has opened, secured and logged in is kept
for as long as it is sound; what follows from a command goes along without an answer. That is for a single server and
our own client alone: with a client of the user's, whose pool and listeners are theirs, each command is the driver's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import contextmanager, suppress
from itertools import count
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, NamedTuple

import bson
from pymongo.errors import AutoReconnect, NetworkTimeout, OperationFailure, PyMongoError, WriteConcernError

from rota.store.mongo.faults import of_writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pymongo import MongoClient
    from pymongo.collection import Collection
    from pymongo.database import Database

    from rota.store.mongo.space import Document

OP_MSG = 2013
NO_ANSWER = 2  # a flag of a message
MOST_KEPT = 4  # connections; more threads than that borrow and return
CHECK_AFTER = 1.0  # seconds: a connection that lay idle for longer may be broken
CHUNK = 1 << 16
SAFE = {"w": "majority", "j": True}  # what a command's write waits for: as in `space`
QUICK = {"w": 1}
SENT = {"w": 0}

_header = Layout("<iiiiIB")  # length, number, answer to, kind, flags, and that a document follows
_part = Layout("<Bi")
_length = Layout("<i")
_numbers = count(1)


class Command(NamedTuple):
    """One command; `rows` are the documents of its last field, encoded already."""

    body: Document
    field: str = ""
    rows: Sequence[bytes] = ()


def part_of_many(query: Document, update: Document) -> Document:
    """One part of an update command, for documents that are named by their ids."""
    return {"q": query, "u": update, "multi": True, "hint": "_id_"}


def updating(collection: Collection[Document], parts: list[Document], concern: Document) -> Command:
    return Command({"update": collection.name, "updates": parts, "ordered": False, "writeConcern": concern})


def number_of(answer: Document) -> int:
    """How many documents an update met; a fault where one of its parts has failed."""
    if answer.get("writeErrors"):
        raise of_writes(answer)
    return int(answer["n"])


class _Asking(ABC):
    """What both ways have in common."""

    @abstractmethod
    def ask(self, *commands: Command, then: Sequence[Command] = ()) -> list[Document]:
        """The answers to these commands, which the server works on in this order; what comes `then` has none."""

    def update(
        self, collection: Collection[Document], parts: list[Document], concern: Document, then: Sequence[Command] = ()
    ) -> int:
        """Have an update's parts done; how many documents they met."""
        (answer,) = self.ask(updating(collection, parts, concern), then=then)
        return number_of(answer)


class Wire(_Asking):
    """Sends commands to the one database of an own client."""

    def __init__(self, database: Database[Document], deadline: float) -> None:
        self._client: MongoClient[Document] = database.client
        self._name = database.name
        self._deadline = deadline
        self._idle: deque[_Line] = deque()
        self._is_closed = False

    def ask(self, *commands: Command, then: Sequence[Command] = ()) -> list[Document]:
        line = self._take()
        messages = [self._message(command, 0) for command in commands]
        messages += [self._message(command, NO_ANSWER) for command in then]
        with line.guarded():
            line.send(b"".join(messages))
            answers = line.receive(len(commands))
        self._keep(line)
        for answer in answers:
            check(answer)
        return answers

    def tell(self, *commands: Command) -> None:
        """Have these done some time soon; what becomes of them is not known."""
        line = self._take()
        with line.guarded():
            line.send(b"".join(self._message(command, NO_ANSWER) for command in commands))
        self._keep(line)

    def settle(self) -> None:
        """Wait until all that was told is done."""
        ping = self._message(Command({"ping": 1}), 0)
        for _ in range(len(self._idle)):
            try:
                line = self._idle.popleft()
            except IndexError:  # others are at work, too
                return
            with line.guarded():
                line.send(ping)
                line.receive(1)
            self._keep(line)

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.popleft().give_back()

    def _message(self, command: Command, flags: int) -> bytes:
        body = bson.encode({**command.body, "$db": self._name})
        if command.rows:
            rows = b"".join(command.rows)
            field = command.field.encode() + b"\0"
            body += _part.pack(1, 4 + len(field) + len(rows)) + field + rows
        return _header.pack(_header.size + len(body), next(_numbers), 0, OP_MSG, flags, 0) + body

    def _take(self) -> _Line:
        """The one that was used last, if any is idle."""
        while True:
            try:
                line = self._idle.pop()
            except IndexError:
                return _Line(self._client, self._deadline)
            if line.is_sound():
                return line
            line.drop()

    def _keep(self, line: _Line) -> None:
        if len(self._idle) < MOST_KEPT and not self._is_closed:
            self._idle.append(line)
        else:
            line.give_back()


class Driver(_Asking):
    """The same, each command by the driver; nothing is left to itself."""

    def __init__(self, database: Database[Document]) -> None:
        self._database = database

    def ask(self, *commands: Command, then: Sequence[Command] = ()) -> list[Document]:
        answers = [self._database.command(_whole(command)) for command in commands]
        self.tell(*then)
        for answer in answers:
            check(answer)
        return answers

    def tell(self, *commands: Command) -> None:
        for command in commands:
            with suppress(PyMongoError):
                self._database.command({**command.body, "writeConcern": QUICK})

    def settle(self) -> None:
        """All was answered."""

    def close(self) -> None:
        """Nothing is kept."""


def lends(client: MongoClient[Document], deadline: float) -> bool:
    """Whether this release of the driver lends its connections in the way that is known here."""
    try:
        _Line(client, deadline).give_back()
    except (AttributeError, TypeError):
        return False
    return True


class _Line:
    """One borrowed connection."""

    def __init__(self, client: MongoClient[Document], deadline: float) -> None:
        self._loan = client._conn_for_writes(None, "rota")  # noqa: SLF001 - the driver has no public way to lend one
        self._connection = self._loan.__enter__()
        kept: Any = self._connection.conn
        self._socket = getattr(kept, "get_conn", kept)
        self._deadline = deadline
        self._used_at = time.monotonic()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever goes wrong, nobody knows what the server still has to say: the connection is of no more use."""
        try:
            yield
        except OSError as err:
            self.drop()
            raise _told(err) from err
        except BaseException:
            self.drop()
            raise

    def send(self, messages: bytes) -> None:
        self._socket.settimeout(self._deadline)
        self._socket.sendall(messages)

    def receive(self, number: int) -> list[Document]:
        held = bytearray()
        answers: list[Document] = []
        for _ in range(number):
            self._fill(held, _length.size)
            size = _length.unpack_from(held)[0]
            self._fill(held, size)
            answers.append(bson.decode(memoryview(held)[_header.size : size]))
            held = held[size:]
        self._used_at = time.monotonic()
        return answers

    def is_sound(self) -> bool:
        return time.monotonic() - self._used_at < CHECK_AFTER or not self._connection.conn_closed()

    def drop(self) -> None:
        self._connection.close_conn(None)
        self.give_back()

    def give_back(self) -> None:
        self._loan.__exit__(None, None, None)

    def _fill(self, held: bytearray, size: int) -> None:
        while len(held) < size:
            chunk = self._socket.recv(max(CHUNK, size - len(held)))
            if not chunk:
                raise ConnectionError("the server closed the connection")
            held += chunk


def check(answer: Document) -> None:
    """Raise what the server says went wrong with a whole command; its single writes are the caller's to look at."""
    if not answer.get("ok"):
        raise OperationFailure(str(answer.get("errmsg")), answer.get("code"), answer)
    trouble = answer.get("writeConcernError")
    if trouble:
        raise WriteConcernError(str(trouble.get("errmsg")), trouble.get("code"), answer)


def _told(err: OSError) -> PyMongoError:
    """A broken link in the driver's words."""
    return NetworkTimeout(str(err)) if isinstance(err, TimeoutError) else AutoReconnect(str(err))


def _whole(command: Command) -> Document:
    rows = {command.field: [bson.decode(row) for row in command.rows]} if command.rows else {}
    return {**command.body, **rows}
