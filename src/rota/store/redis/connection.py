"""Calls scripts on the server, each with a deadline, and translates the driver's faults."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from redis.exceptions import NoScriptError, RedisError, ResponseError

from rota.errors import StoreUnavailable
from rota.failpoints import reach
from rota.store.contract import Seal
from rota.store.redis import schema
from rota.store.redis.clock import ServerClock
from rota.store.redis.codec import encode
from rota.store.redis.faults import translate
from rota.store.redis.scripts import script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from redis import Redis
    from redis.cluster import RedisCluster

log = logging.getLogger("rota.store.redis")

MOST_DATED = 2  # tries to add jobs that are dated before they are sent


class Reply(NamedTuple):
    """What a script answered, and the server's clock when it did."""

    now: int
    body: Any


class Connection:
    """One namespace on one server. A client that was passed in is never closed."""

    def __init__(self, client: Redis | RedisCluster, namespace: str, address: str, *, is_ours: bool) -> None:
        self.client: Any = client  # the driver's own types say little
        self.clock = ServerClock()
        self.prefix = f"{{{namespace}}}:"
        self.address = address  # for people
        self.description = f"{address}, namespace {namespace}"
        self._namespace = namespace
        self._is_ours = is_ours
        self._pool: Any = getattr(client, "connection_pool", None)  # a cluster client has one per node
        self.reads_bytes = self._pool is not None and not client.get_encoder().decode_responses
        self._is_open = False
        self._has_warned = False

    def open(self) -> None:
        if self.pending_migrations():
            self.command("HSET", f"{self.prefix}meta", "version", schema.VERSION)
        self._is_open = True
        if not self._has_warned:
            self._has_warned = True
            for warning in self.warnings():
                log.warning("%s", warning)

    def pending_migrations(self) -> list[str]:
        """What open() would write; refuses a server or a schema version that this code cannot use."""
        schema.check_server(self.command("INFO", "server") | self.command("INFO", "replication"), self.address)
        found = self.command("HGET", f"{self.prefix}meta", "version")
        is_there = schema.check_version(found, self.address)
        return [] if is_there else [f"HSET {self.prefix}meta version {schema.VERSION}"]

    def warnings(self) -> list[str]:
        return schema.settings_warnings(self.command, self.address)

    def close(self) -> None:
        self._is_open = False
        if self._is_ours:
            self.client.close()

    def call(
        self, name: str, *, verb: str | None = None, now: int | None = None, is_work: bool = False, **request: Any
    ) -> Reply:
        """Run a script: one round trip, one atomic step, at `now` or by the server's clock. `verb`: what it commits."""
        return self._call(name, encode(request), verb=verb, now=now, is_work=is_work)

    def add(self, verb: str, name: str, values_at: Callable[[int], Sequence[str | bytes]], now: int | None) -> Any:
        """Run a script that adds jobs; returns its answer. They are dated by the estimated clock, which the script
        checks: if it was wrong, they are dated again. None if it was wrong twice, as on a link that is so slow that
        a date is old when it arrives."""
        for _ in range(MOST_DATED):
            at = self.clock.now() if now is None else now
            reply = self._call(name, *values_at(at), verb=verb, now=now, is_work=True, dated=str(at))
            if reply.body != b"clock":
                return reply.body
            self.clock.reset(reply.now)
        return None

    def _call(
        self, name: str, *values: str | bytes, verb: str | None, now: int | None, is_work: bool, dated: str = ""
    ) -> Reply:
        if not self._is_open:
            raise StoreUnavailable(f"the store {self.address} is closed")
        if verb is not None:
            reach(f"{verb}.before_commit")
        injected = "" if now is None else str(now)  # text loses no digit in Lua
        with self.translated():
            at, is_lost, seal, body = self._run(name, injected, "1" if is_work else "", dated, *values)
        if now is None:
            self.clock.update(int(at))
        if is_lost:
            log.error(
                "%s was emptied while it was in use: the jobs, schedules and history of namespace %r are gone. "
                "Schedules that code or files define come back when their apps start; look for FLUSHALL, FLUSHDB, "
                "eviction or a server without persistence",
                self.address,
                self._namespace,
            )
        if body is None and seal is not None:
            raise msgspec.json.decode(seal, type=Seal).refusal(self.description)
        if verb is not None:
            reach(f"{verb}.after_commit")
        return Reply(int(at), body)

    def command(self, *parts: str) -> Any:
        """Run a plain command, such as INFO; of a cluster, the node that has this namespace is asked."""
        with self.translated():
            if self._pool is not None:
                return self.client.execute_command(*parts)
            return self.client.execute_command(*parts, target_nodes=self.client.get_node_from_key(self.prefix))

    def namespaces(self) -> list[str]:
        """The namespaces on the server: one pass over the names of all keys, in steps that do not block it."""
        with self.translated():
            keys = list(self.client.scan_iter(match="{*}:meta", count=1_000))
        names = [key.decode(errors="replace") if isinstance(key, bytes) else key for key in keys]
        return sorted({name[1:].removesuffix("}:meta") for name in names})

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the driver's faults as Rota's errors."""
        try:
            yield
        except (RedisError, OSError) as err:
            raise translate(err, self.address) from err

    def _run(self, name: str, *parts: str | bytes) -> Any:
        chosen = script(name)
        try:
            return self._send("EVALSHA", chosen.digest, "1", self.prefix, *parts)
        except NoScriptError:  # after a restart, a fail-over or SCRIPT FLUSH
            return self._send("EVAL", chosen.source, "1", self.prefix, *parts)

    def _send(self, *parts: str | bytes) -> Any:
        """Through a connection of the pool: the client's own way takes a fifth more CPU."""
        if self._pool is None:
            return self.client.execute_command(*parts, NEVER_DECODE=True)
        connection = None
        try:
            connection = self._pool.get_connection()
            connection.send_command(*parts)
            return connection.read_response(disable_decoding=True)
        except ResponseError:
            raise
        except BaseException as err:
            if connection is not None:  # an interrupt, too: the next call would read the answer that is still to come
                connection.disconnect()
            elif not isinstance(err, (RedisError, OSError)):  # an interrupt: the pool may have half a connection
                self._pool.disconnect(inuse_connections=False)
            raise
        finally:
            if connection is not None:
                self._pool.release(connection)
