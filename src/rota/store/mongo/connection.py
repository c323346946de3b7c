"""Opens a client or uses the caller's, gives every call a deadline, and finds out what kind of server it is."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pymongo
from pymongo import MongoClient

from rota.errors import StoreError, StoreUnavailable
from rota.store.mongo.address import DATABASE, check_url, shown
from rota.store.mongo.database import DURABLE, QUICK, SENT, Database, Document, collections_of
from rota.store.mongo.faults import translated
from rota.store.mongo.schema import check_server
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pymongo.client_session import ClientSession

DEADLINE = 8.0  # seconds for a whole verb, however many calls to the server it needs
CONNECT_WITHIN = 4_000  # ms


class Connection:
    """One client and one namespace. A client that the caller gave is never closed."""

    def __init__(self, where: str | MongoClient[Document], namespace: str, database: str | None = None) -> None:
        self._url = where if isinstance(where, str) else None
        self._client = None if isinstance(where, str) else where
        self._given_database = database
        self._namespace = namespace
        self._pid = os.getpid()
        self._databases: tuple[Database, Database, Database] | None = None  # durable, quick, sent
        self._sessions = threading.local()
        self._was_forked = False  # it was open in the parent; the first call here opens it again
        self._reopening = threading.Lock()
        self.has_transactions = False
        self.where = shown(where, database)
        if self._url is not None:
            check_url(self._url, self.where)

    def describe(self) -> str:
        return f"{self.where}, namespace {self._namespace}"

    def open(self) -> None:
        """Connect, and find out whether the server has transactions."""
        self._pid = os.getpid()
        with translated(self.where), pymongo.timeout(DEADLINE):
            client = self._client if self._client is not None else self._connect()
            try:
                self._check_server(client)
            except BaseException:
                self._disconnect()
                raise
            name = self._given_database
            database = client.get_default_database(DATABASE) if name is None else client.get_database(name)
            of = database, self._namespace
            self._databases = collections_of(*of, DURABLE), collections_of(*of, QUICK), collections_of(*of, SENT)

    def after_fork(self) -> None:
        """In a child process: the client is the parent's. A client that the caller gave cannot be opened again."""
        for inherited in (self._sessions, self._client):
            forks.abandon(inherited)
        self._sessions = threading.local()
        self._reopening = threading.Lock()  # a thread of the parent may hold the old one
        if self._url is None:
            return
        self._was_forked = self._was_forked or self._databases is not None
        self._client = self._databases = None
        self._pid = os.getpid()

    def close(self) -> None:
        with self._reopening:
            self._was_forked = False
            self._disconnect()

    def _disconnect(self) -> None:
        self._databases = None
        if self._url is not None and self._client is not None:
            self._client.close()
            self._client = None

    @contextmanager
    def call(self) -> Iterator[Database]:
        """The calls of one verb: with one deadline, and with the driver's errors translated."""
        db = self.db
        with translated(self.where), pymongo.timeout(DEADLINE):
            yield db

    @contextmanager
    def session(self) -> Iterator[ClientSession]:
        """The session of this thread's verb. There is one for the whole verb, which the control document names."""
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
    def db(self) -> Database:
        """The collections; a write is answered when it is durable."""
        return self._opened()[0]

    @property
    def quick(self) -> Database:
        """The same; a write is answered at once, and a durable write must follow."""
        return self._opened()[1]

    @property
    def sent(self) -> Database:
        """The same; a write is not answered, and may be lost."""
        return self._opened()[2]

    @property
    def client(self) -> MongoClient[Document]:
        return self.db.database.client

    def _opened(self) -> tuple[Database, Database, Database]:
        if self._pid != os.getpid():
            raise StoreError(
                "the client that this store was given was opened before a fork; give the child process one of its own"
            )
        if self._was_forked:
            with self._reopening:  # once, however many threads call; if the server is away, the next call tries again
                if self._was_forked:
                    self.open()
                    self._was_forked = False
        if self._databases is None:
            raise StoreUnavailable(f"{self.where} is closed")
        return self._databases

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

    def _check_server(self, client: MongoClient[Document]) -> None:
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
