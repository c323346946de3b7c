"""The link to a server: scripts called by their digest, every call with a deadline, its faults told in Rota's words."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from redis.exceptions import NoScriptError, RedisError

from rota.errors import StoreUnavailable
from rota.store.contract import Seal
from rota.store.redis.faults import told
from rota.store.redis.lines import Lines
from rota.store.redis.schema import VERSION
from rota.store.redis.scripts import script
from rota.store.redis.wire import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis
    from redis.cluster import RedisCluster

    from rota.store.redis.scripts import Script

log = logging.getLogger("rota.store.redis")

_NEVER_DECODE = {"NEVER_DECODE": True}


def packed(**ask: Any) -> bytes:
    """What a script is asked, as it is sent."""
    return encode(ask | {"version": VERSION})


def _text(key: bytes | str) -> str:
    return key.decode(errors="replace") if isinstance(key, bytes) else key


class Reply(NamedTuple):
    """What a script answered, and the server's clock when it did."""

    now: int
    body: Any


class Link:
    """One namespace on one server. A client that was given is used as it is, and never closed."""

    def __init__(self, client: Redis | RedisCluster, namespace: str, place: str, *, is_ours: bool) -> None:
        self.client: Any = client  # the driver's own types say little
        self.prefix = f"{{{namespace}}}:"
        self.place = place  # for people
        self.description = f"{place}, namespace {namespace}"
        self._namespace = namespace
        self._is_ours = is_ours
        pool = getattr(client, "connection_pool", None)  # a cluster has one per node
        self._lines = None if pool is None else Lines(pool, keep=is_ours)
        self._ahead = 0  # the server's clock minus our monotonic one, at most
        self._is_open = False

    def open(self) -> None:
        self._is_open = True

    def close(self) -> None:
        self._is_open = False
        if self._lines is not None:
            self._lines.close()
        if self._is_ours:
            self.client.close()

    def call(self, name: str, **ask: Any) -> Reply:
        """Run a script: one round trip, one atomic step."""
        return self.call_plainly(name, packed(**ask), is_clock=ask.get("now") is None)

    def call_plainly(self, name: str, *parts: str | bytes, is_clock: bool) -> Reply:
        """Run a script that takes its arguments one by one; `is_clock`: it answers with the server's own time."""
        if not self._is_open:
            raise StoreUnavailable(f"the store {self.place} is closed")
        try:
            now, is_lost, seal, body = self._run(script(name), *parts)
        except (RedisError, OSError) as err:
            raise told(err, self.place) from err
        instant = int(now)
        if is_clock:
            self._sync(instant)
        if is_lost:
            self._tell_loss()
        if body is None and seal is not None:
            raise msgspec.json.decode(seal, type=Seal).refusal(self.description)
        return Reply(instant, body)

    def command(self, *parts: str) -> Any:
        """Run a plain command, such as INFO; of a cluster, the node that has this namespace is asked."""
        with self.told():
            if self._lines is not None:
                return self.client.execute_command(*parts)
            node = self.client.get_node_from_key(self.prefix)
            return self.client.execute_command(*parts, target_nodes=node)

    def namespaces(self) -> list[str]:
        """The namespaces on the server: one pass over the names of all keys, in steps that block nobody."""
        with self.told():
            found = [_text(key) for key in self.client.scan_iter(match="{*}:meta", count=1_000)]
        return sorted({key[1:].removesuffix("}:meta") for key in found})

    def estimated_now(self) -> int:
        """The server's clock as its last replies tell: never ahead of it, unless it was set back since."""
        return time.monotonic_ns() // 1000 + self._ahead

    def reset_clock(self, now: int) -> None:
        """The server's clock was set back: what was known of it is void."""
        self._ahead = now - time.monotonic_ns() // 1000

    @contextmanager
    def told(self) -> Iterator[None]:
        """Translate the driver's faults at the border: what happened, and what to do next."""
        try:
            yield
        except (RedisError, OSError) as err:
            raise told(err, self.place) from err

    def _run(self, chosen: Script, *parts: str | bytes) -> Any:
        try:
            return self._send("EVALSHA", chosen.digest, "1", self.prefix, *parts)
        except NoScriptError:  # a restart, a fail-over or SCRIPT FLUSH
            return self._send("EVAL", chosen.source, "1", self.prefix, *parts)

    def _send(self, *parts: str | bytes) -> Any:
        """Straight through a connection where there is a pool of them: half the cost of the client's own way."""
        if self._lines is None:
            return self.client.execute_command(*parts, **_NEVER_DECODE)
        return self._lines.call(parts)

    def _sync(self, now: int) -> None:
        """The reply was sent before it came: the greatest difference is the nearest to the truth."""
        ahead = now - time.monotonic_ns() // 1000
        self._ahead = max(self._ahead, ahead)

    def _tell_loss(self) -> None:
        log.error(
            "%s was emptied while it was in use: the jobs, schedules and history of namespace %r are gone. "
            "Schedules that code or files define come back when their apps start; look for FLUSHALL, FLUSHDB, "
            "eviction or a server without persistence",
            self.place,
            self._namespace,
        )
