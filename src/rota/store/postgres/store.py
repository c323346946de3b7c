"""Defines PostgresStore: the contract on a schema of PostgreSQL. Each verb delegates to the part that has the duty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg_pool import AsyncConnectionPool, ConnectionPool

from rota.errors import BadStoreUrl
from rota.model.names import check_namespace
from rota.store.contract import Features, Removal
from rota.store.postgres import schema
from rota.store.postgres.adding import Adder
from rota.store.postgres.address import Address, parse
from rota.store.postgres.changing import Changer
from rota.store.postgres.connection import Database
from rota.store.postgres.exchange import Exchanger
from rota.store.postgres.firing import Firer
from rota.store.postgres.leases import Leases
from rota.store.postgres.ledger import Ledger
from rota.store.postgres.listing import Listing
from rota.store.postgres.lookahead import LookaheadDecider
from rota.store.postgres.moving import Moving
from rota.store.postgres.operations import Operations
from rota.store.postgres.records import Records
from rota.store.postgres.schedules import Schedules
from rota.store.postgres.upkeep import Upkeep
from rota.store.shared.parts import ServerStore, TransactionalStore

if TYPE_CHECKING:
    from rota.store.contract import Channel, Listener


def from_url(url: str, *, namespace: str = "rota") -> PostgresStore:
    """The store that a URL names, not opened yet."""
    return PostgresStore(url, namespace=namespace)


class PostgresStore(ServerStore, TransactionalStore):
    """One schema, shared by any number of threads, processes and hosts."""

    features = Features(kind="postgres", is_durable=True, is_shared=True, enqueues_in_transactions=True)

    def __init__(
        self,
        server: str | ConnectionPool[Any],
        *,
        namespace: str = "rota",
        listen_url: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """`server` is a URL, or a psycopg_pool.ConnectionPool of the caller: it is used, and never closed."""
        where = parse(server) if isinstance(server, str) else server
        if not isinstance(where, Address | ConnectionPool):
            raise BadStoreUrl(_not_a_server(server))
        options = where if isinstance(where, Address) else Address(conninfo="")
        listen = parse(listen_url).conninfo if listen_url else options.listen
        self._database = database = Database(where, check_namespace(namespace), timeout or options.timeout, listen)
        super().__init__(database, namespace)
        self._adder = adder = Adder(database)
        self._leases = Leases(database)
        self._ledger = ledger = Ledger(database)
        self._listing = Listing(database)
        self._records = records = Records(database)
        self._operations = Operations(database)
        self._moving = Moving(database)
        self._changer = self._settler = changer = Changer(database, ledger)
        self._schedules = schedules = Schedules(database, adder, changer, ledger, records)
        self._firer = Firer(database, schedules, changer, ledger)
        self._exchanger = Exchanger(database, changer, LookaheadDecider(schedules, changer, ledger))
        self._upkeep = Upkeep(database, changer, ledger, records)

    def open(self) -> None:
        schema.open_schema(self._database)

    def pending_migrations(self) -> list[str]:
        return self._database.visit(schema.pending_scripts)

    def namespaces(self) -> list[str]:
        return self._database.visit(schema.namespaces)

    def removal(self) -> Removal:
        command = f'DROP SCHEMA "{self.namespace}" CASCADE'
        return Removal(words=f"run {command}, after a look at what else is in it or refers to it: that goes with it")

    def now(self) -> int:
        return self._database.now()

    def listen(self, channel: Channel) -> Listener:
        return self._database.notifier.listen(channel)


def _not_a_server(server: object) -> str:
    if isinstance(server, AsyncConnectionPool):
        return "an AsyncConnectionPool cannot carry the store, which works in threads; give a ConnectionPool or a URL"
    return f"a PostgreSQL store takes a URL or a psycopg_pool.ConnectionPool, got {type(server).__name__}"
