"""Defines SqliteStore: the contract on one SQLite file. Each verb is one transaction."""

from __future__ import annotations

from pathlib import Path

from rota.model.names import check_namespace
from rota.store import contract as c
from rota.store.shared.parts import TransactionalStore
from rota.store.sqlite import clock, schema
from rota.store.sqlite.adding import Adder
from rota.store.sqlite.block_index import BlockIndex
from rota.store.sqlite.caller_transaction import caller_transaction
from rota.store.sqlite.changing import Changer
from rota.store.sqlite.connection import Database
from rota.store.sqlite.exchange import Exchanger
from rota.store.sqlite.file_identity import Epoch, is_there
from rota.store.sqlite.firing import Firer
from rota.store.sqlite.leases import Leases
from rota.store.sqlite.ledger import Ledger
from rota.store.sqlite.listing import Listing
from rota.store.sqlite.lookahead import LookaheadDecider
from rota.store.sqlite.moving import Moving
from rota.store.sqlite.notify import Notifier
from rota.store.sqlite.operations import Operations
from rota.store.sqlite.records import Records
from rota.store.sqlite.schedules import Schedules
from rota.store.sqlite.transaction import Seals, Transactions
from rota.store.sqlite.upkeep import Upkeep


class SqliteStore(TransactionalStore):
    """One file, shared by any number of threads and processes of one host."""

    features = c.Features(
        kind="sqlite", is_durable=True, is_shared=True, enqueues_in_transactions=True, has_lease_clock=True
    )

    def __init__(self, path: str | Path, *, namespace: str = "rota") -> None:
        self.path: Path = Path(path).absolute()
        self.namespace = name = check_namespace(namespace)
        self._database = Database(self.path, self._reopened)
        self._notifier = Notifier(self.path.with_name(self.path.name + "-notify"), self._database.data_version)
        self._blocks = BlockIndex(name)
        seals = Seals(name, self.describe())
        transactions = Transactions(self._database, name, seals, self._blocks, self._notifier)
        self._listing = Listing(name, transactions, self._blocks)
        self._ledger = Ledger(name, transactions)
        self._records = Records(transactions)
        self._operations = Operations(name, transactions)
        self._adder = adder = Adder(name, transactions)
        self._changer = Changer(name, transactions, self._listing, self._ledger)
        self._leases = Leases(name, transactions, self._changer)
        self._schedules = Schedules(name, transactions, adder, self._changer, self._ledger, self._records)
        self._firer = Firer(name, transactions, self._schedules, adder, self._changer, self._ledger)
        lookahead = LookaheadDecider(name, self._schedules, adder, self._changer, self._ledger)
        self._exchanger = self._settler = Exchanger(name, transactions, self._listing, self._changer, lookahead)
        self._upkeep = Upkeep(transactions, self._changer, self._ledger, self._operations, self._records)
        self._moving = Moving(name, transactions, seals, self._listing, adder)

    def open(self) -> None:
        self._database.open()
        schema.migrate(self._database, self.namespace)
        self._database.keep_watch(Epoch(self.namespace, self.path))
        self._notifier.open()

    def open_within(self, transaction: object) -> bool:
        """Make the tables in the caller's transaction, if it has begun one: it may have the lock that open() needs."""
        with self._database.translated, caller_transaction(transaction, self.path) as connection:
            schema.migrate_within(connection, self.namespace)
        return False

    def _reopened(self) -> None:
        """Another file took the place of the one before: what was known of that does not hold."""
        schema.check_current(self._database, self.namespace)
        self._blocks.void()

    def is_missing(self) -> bool:
        return not is_there(self.path)

    def pending_migrations(self) -> list[str]:
        if self.is_missing():
            return schema.all_scripts(self.namespace)
        return schema.pending(Database(self.path), self.namespace)

    def namespaces(self) -> list[str]:
        return [] if self.is_missing() else schema.namespaces(Database(self.path))

    def removal(self) -> c.Removal:
        return schema.removal(Database(self.path), self.namespace)

    def close(self) -> None:
        self._notifier.close()
        if self._database.was_opened:
            self._database.close()

    def describe(self) -> str:
        named = "" if self.namespace == "rota" else f", namespace {self.namespace}"
        return f"sqlite file {self.path}{named}"

    def now(self) -> int:
        return clock.wall_now()

    def listen(self, channel: c.Channel) -> c.Listener:
        return self._notifier.listen(channel)
