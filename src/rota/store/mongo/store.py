"""Defines MongoStore: the contract on one database of a MongoDB server. Each verb calls the part that has the duty.

If the server has transactions (a replica set, a cluster), a step is one. A standalone server has none: there a step is
several writes in a safe order. `outbox`, `changing` and `counters` say what a crash can leave between them,
and who finishes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.names import check_namespace
from rota.store.contract import Features, Removal
from rota.store.mongo import notify, schema
from rota.store.mongo.adding import Adder
from rota.store.mongo.changing import Changer
from rota.store.mongo.connection import Connection
from rota.store.mongo.control import STEP, ControlDocument
from rota.store.mongo.counters import Counters
from rota.store.mongo.database import NAMES
from rota.store.mongo.exchange import Exchanger
from rota.store.mongo.firing import Firer
from rota.store.mongo.leases import Leases
from rota.store.mongo.ledger import Ledger
from rota.store.mongo.listing import Listing
from rota.store.mongo.moving import Moving
from rota.store.mongo.operations import Operations
from rota.store.mongo.records import Records
from rota.store.mongo.schedules import Schedules
from rota.store.mongo.steps import Steps
from rota.store.mongo.upkeep import Upkeep
from rota.store.shared.parts import ServerStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pymongo import MongoClient

    from rota.store import contract
    from rota.store.contract import Page
    from rota.store.mongo.database import Database, Document


class MongoStore(ServerStore):
    """One namespace of one database. `where` is a URL, or a client of the caller's, which is never closed."""

    features = Features(kind="mongo", is_durable=True, is_shared=True, counters_are_exact=False, clock_step=STEP)

    def __init__(
        self, where: str | MongoClient[Document], *, namespace: str = "rota", database: str | None = None
    ) -> None:
        self._given = (where, check_namespace(namespace), database)
        self._connection = Connection(*self._given)
        super().__init__(self._connection, namespace)
        self._control = ControlDocument(self._connection, self.describe())
        counters = Counters()
        self._steps = Steps(self._connection, self._control, counters)
        self._listing = Listing(self._connection)
        self._ledger = Ledger(self._connection)
        self._operations = Operations(self._steps, counters)
        self._changer = Changer(self._steps)
        self._adder = Adder(self._steps)
        self._schedules = Schedules(self._steps)
        self._firer = Firer(self._steps, self._schedules)
        self._upkeep = upkeep = Upkeep(self._steps, counters, self._schedules)
        self._records = Records(self._steps, upkeep.deliver)
        self._leases = Leases(self._steps, upkeep)
        self._exchanger = Exchanger(self._steps, self._changer, upkeep)
        self._moving = Moving(self._steps, self._operations)
        self._deliver = upkeep.deliver

    def open(self) -> None:
        self._connection.open()
        try:
            with self._connection.call() as db:
                schema.migrate(db)
        except BaseException:
            self._connection.close()
            raise

    def pending_migrations(self) -> list[str]:
        return self._read_unopened(schema.pending)

    def namespaces(self) -> list[str]:
        return self._read_unopened(schema.namespaces)

    def removal(self) -> Removal:
        """Also those that do not exist yet: a worker that stops late may create the collection of log lines."""
        names = ", ".join(sorted(f"{self.namespace}_{name}" for name in NAMES))
        return Removal(words=f"drop the collections {names}, and not the database")

    def _read_unopened(self, read: Callable[[Database], list[str]]) -> list[str]:
        connection = Connection(*self._given)
        connection.open()
        try:
            with connection.call() as db:
                return read(db)
        finally:
            connection.close()

    def dump(self, part: contract.Part, *, cursor: str | None = None, limit: int = 500) -> Page[contract.Record]:
        with self._connection.call() as db:
            self._deliver(db)  # no record is copied without what follows from it
        return super().dump(part, cursor=cursor, limit=limit)

    def now(self) -> int:
        with self._connection.call():
            return self._control.now(None)

    def listen(self, channel: contract.Channel) -> contract.Listener:
        return notify.MongoListener(self._connection, channel)
