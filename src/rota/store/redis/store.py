"""The Redis store: the contract on Redis or Valkey. A verb is one script, or one that reads and one that commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.names import check_namespace
from rota.store.contract import Features, Removal
from rota.store.redis.adding import Adder
from rota.store.redis.address import address_of, client_of
from rota.store.redis.changing import Changer
from rota.store.redis.connection import Connection
from rota.store.redis.exchange import Exchanger
from rota.store.redis.fast.direct_claims import DirectClaims
from rota.store.redis.firing import Firer
from rota.store.redis.guarded_write import GuardedWriter
from rota.store.redis.leases import Leases
from rota.store.redis.ledger import Ledger
from rota.store.redis.listing import Listing
from rota.store.redis.lookahead import LookaheadDecider
from rota.store.redis.moving import Moving
from rota.store.redis.notify import ChannelListener
from rota.store.redis.operations import Operations
from rota.store.redis.records import Records
from rota.store.redis.schedules import Schedules
from rota.store.redis.upkeep import Upkeep
from rota.store.shared.parts import PartedStore

if TYPE_CHECKING:
    from redis import Redis
    from redis.cluster import RedisCluster

    from rota.store import contract as c


class RedisStore(PartedStore):
    """One namespace on one server, shared by any number of threads, processes and hosts."""

    features = Features(kind="redis", is_durable=True, is_shared=True)

    def __init__(self, server: str | Redis | RedisCluster, *, namespace: str = "rota") -> None:
        """`server` is a URL, or a client of the caller: it is used, and never closed."""
        self.namespace = check_namespace(namespace)
        client = client_of(server) if isinstance(server, str) else server
        is_ours = isinstance(server, str)
        self._connection = Connection(client, self.namespace, address_of(client), is_ours=is_ours)
        self._writer = writer = GuardedWriter(self._connection)
        self._adder = Adder(writer)
        self._changer = Changer(writer)
        self._schedules = Schedules(writer)
        self._firer = Firer(writer, self._schedules)
        self._direct_claims = DirectClaims()
        lookahead = LookaheadDecider(writer, self._schedules)
        self._exchanger = Exchanger(writer, self._changer, lookahead, self._direct_claims)
        self._leases = Leases(writer)
        self._listing = Listing(writer)
        self._ledger = Ledger(writer)
        self._records = Records(writer)
        self._operations = Operations(writer)
        self._upkeep = Upkeep(writer, self._listing, self._changer)
        self._moving = Moving(writer, self._listing, self._schedules, self._records)

    def open(self) -> None:
        self._connection.open()

    def pending_migrations(self) -> list[str]:
        return self._connection.pending_migrations()

    def namespaces(self) -> list[str]:
        return self._connection.namespaces()

    def removal(self) -> Removal:
        prefix = self._connection.prefix
        return Removal(
            words=f"delete the keys that begin with {prefix} (redis-cli --scan --pattern '{prefix}*' lists them)"
        )

    def close(self) -> None:
        self._connection.close()

    def describe(self) -> str:
        return self._connection.description

    def warnings(self) -> list[str]:
        return self._connection.warnings()

    def now(self) -> int:
        return self._writer.snapshot().now

    def listen(self, channel: c.Channel) -> c.Listener:
        return ChannelListener(self._connection, channel, self._direct_claims)
