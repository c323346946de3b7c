"""The connection: a client of our own or of the user's, a deadline on every call, and what kind of server it is."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pymongo
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from rota.errors import BadStoreUrl, StoreError, StoreUnavailable
from rota.store.mongo.faults import in_our_words, told
from rota.store.mongo.schema import check_server
from rota.store.mongo.space import QUICK, SENT, Document, Space
from rota.store.mongo.wire import Driver, Wire, lends
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pymongo.client_session import ClientSession

DEADLINE = 8.0  # seconds for a whole verb, whatever it needs of the server
CONNECT_WITHIN = 4_000  # ms
DATABASE = "rota"  # where the URL names none


class Connection:
    """One client and one namespace. A client that the user brought is never closed."""

    def __init__(self, where: str | MongoClient[Document], namespace: str, database: str | None = None) -> None:
        self._url = where if isinstance(where, str) else None
        self._client = None if isinstance(where, str) else where
        self._given_database = database
        self._namespace = namespace
        self._pid = os.getpid()
        self._space: Space | None = None
        self._quick: Space | None = None
        self._sent: Space | None = None
        self._wire: Wire | Driver | None = None
        self._sessions = threading.local()
        self._was_forked = False  # it was open in the parent, and is opened again by the first call that can
        self._reopening = threading.Lock()
        self.has_transactions = False
        self.where = _shown(where, database)
        if self._url is not None:
            _check_url(self._url, self.where)

    def open(self) -> None:
        """Connect, and learn whether the server has transactions."""
        self._pid = os.getpid()
        with told(self.where), pymongo.timeout(DEADLINE):
            client = self._client if self._client is not None else self._connect()
            try:
                self._look_at(client)
            except BaseException:
                self._disconnect()
                raise
            database = client.get_default_database(DATABASE)
            if self._given_database is not None:
                database = client.get_database(self._given_database)
            self._space = Space(database, self._namespace)
            self._quick = self._space.with_concern(QUICK)
            self._sent = self._space.with_concern(SENT)
            is_plain = self._url is not None and not self.has_transactions and lends(client, DEADLINE)
            self._wire = Wire(database, DEADLINE) if is_plain else Driver(self._space.database)

    def after_fork(self) -> None:
        """In a child: the client is the parent's. One that was given cannot be opened again here, see space."""
        for inherited in (self._wire, self._sessions, self._client):
            forks.abandon(inherited)
        self._sessions = threading.local()
        self._reopening = threading.Lock()  # a thread that the child does not have may hold the parent's
        if self._url is None:
            return
        self._was_forked = self._was_forked or self._space is not None
        self._client = self._wire = self._space = self._quick = self._sent = None
        self._pid = os.getpid()

    def close(self) -> None:
        with self._reopening:
            self._was_forked = False
            self._disconnect()

    def _disconnect(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
        self._space = self._quick = self._sent = None
        if self._url is not None and self._client is not None:
            self._client.close()
            self._client = None

    @contextmanager
    def call(self) -> Iterator[Space]:
        """One verb's use of the server: bounded in time, its faults in our words."""
        space = self.space
        with told(self.where), pymongo.timeout(DEADLINE):
            yield space

    @contextmanager
    def session(self) -> Iterator[ClientSession]:
        """The session of this thread's verb: one for all of it, so that others know whose transaction they meet."""
        current: ClientSession | None = getattr(self._sessions, "current", None)
        if current is not None:
            yield current
            return
        with self.client.start_session() as session:
            self._sessions.current = session
            try:
                yield session
            finally:
                self._sessions.current = None

    @property
    def space(self) -> Space:
        """The collections; what is written there is answered when it is safe."""
        if self._pid != os.getpid():
            raise StoreError(
                "the client that this store was given was opened before a fork; give the child process one of its own"
            )
        if self._was_forked:
            self._open_in_child()
        if self._space is None:
            raise StoreUnavailable(f"{self.where} is closed")
        return self._space

    @property
    def quick(self) -> Space:
        """The same; a durable write must follow, unless the server has transactions, which carry their own care."""
        return self._quick or self.space

    @property
    def sent(self) -> Space:
        """The same, for what may get lost."""
        return self._sent or self.space

    @property
    def wire(self) -> Wire | Driver:
        """The short way to the same, for what is asked most often."""
        if self._wire is None or self._pid != os.getpid():
            return Driver(self.space.database)  # which says why there is none
        return self._wire

    @property
    def client(self) -> MongoClient[Document]:
        return self.space.database.client

    def _open_in_child(self) -> None:
        """Open it once, however many threads make the first call; if the server is away, the next call tries again."""
        with self._reopening:
            if self._was_forked:
                self.open()
                self._was_forked = False

    def _connect(self) -> MongoClient[Document]:
        self._client = MongoClient(
            self._url,
            connectTimeoutMS=CONNECT_WITHIN,
            serverSelectionTimeoutMS=CONNECT_WITHIN,
            socketTimeoutMS=int(DEADLINE * 1000),
            appname="rota",
            tz_aware=False,
        )
        return self._client

    def _look_at(self, client: MongoClient[Document]) -> None:
        hello = client.admin.command("hello")
        if hello.get("isreplicaset"):
            raise StoreUnavailable(f"{self.where} is a member of no replica set yet; run rs.initiate() on it")
        if not hello.get("isWritablePrimary"):
            raise StoreUnavailable(
                f"{self.where} is a read-only member of a replica set; name all members and replicaSet= in the URL, "
                "so that the primary is found"
            )
        check_server(client.admin.command("buildInfo")["versionArray"])
        self.has_transactions = "setName" in hello or hello.get("msg") == "isdbgrid"


def _shown(where: str | MongoClient[Document], database: str | None) -> str:
    """Where it is, for people: no user, no password, no options."""
    if not isinstance(where, str):
        return f"mongodb database {database or where.get_default_database(DATABASE).name} of a client given by its user"
    parts = urlsplit(where)
    hosts = parts.netloc.rpartition("@")[2]
    return f"mongodb database {database or parts.path.strip('/') or DATABASE} at {hosts}"


def _check_url(url: str, where: str) -> None:
    if url.startswith("mongodb+srv:"):
        return  # needs a name server; open() asks it
    try:
        pymongo.uri_parser.parse_uri(url)
    except (PyMongoError, ValueError) as err:
        known = in_our_words(err, where) if isinstance(err, PyMongoError) else None
        raise known or BadStoreUrl(f"{where}: {err}") from None  # the driver's words may quote the password
