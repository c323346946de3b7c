"""Calls the scripts of a source on Redis, and translates the driver's faults."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from redis import Redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from rota.errors import BadOption
from rota.store.redis.faults import translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEADLINE = 8.0  # seconds for one call
Client = Redis | RedisCluster | str


class Script(NamedTuple):
    """A script with its beginning that all share, and the name under which the server keeps it."""

    source: str
    digest: str


@cache
def script(name: str) -> Script:
    folder = files("rota.documents.sources.redis") / "lua"
    source = "\n".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


class Connection:
    """One server, or a cluster. A client that was passed in is never closed."""

    def __init__(self, given: Client, prefix: str, names: Sequence[str]) -> None:
        if not isinstance(given, (str, Redis, RedisCluster)):
            raise BadOption(
                f"RedisSource takes a URL such as 'redis://host:6379', or a client of redis-py; "
                f"got {type(given).__name__}"
            )
        if not isinstance(prefix, str) or not prefix or any(char in prefix for char in "{}\0"):
            raise BadOption(f"the prefix {prefix!r} cannot be used; write a name such as 'orders', without braces")
        self.root = f"{{{prefix}}}:"
        self._is_ours = isinstance(given, str)
        self._names = names
        # A script that is sent twice would find its own lock: the queue repeats calls itself, and knows that it does.
        self._client: Any = (
            Redis.from_url(given, socket_timeout=DEADLINE, socket_connect_timeout=DEADLINE, retry=Retry(NoBackoff(), 0))
            if isinstance(given, str)
            else given
        )
        self._is_cluster = isinstance(given, RedisCluster)
        self._address = _address(self._client)

    def call(self, name: str, *parts: str | bytes) -> Any:
        """Run a script: one round trip, one atomic step."""
        chosen = script(name)
        arguments = ("1", self.root, *self._names, *parts)
        with self.translated():
            try:
                return self._client.execute_command("EVALSHA", chosen.digest, *arguments, NEVER_DECODE=True)
            except NoScriptError:  # after a restart, a fail-over or SCRIPT FLUSH
                return self._client.execute_command("EVAL", chosen.source, *arguments, NEVER_DECODE=True)

    def clock(self) -> tuple[int, int]:
        """The server's time, as it gives it: seconds and microseconds."""
        with self.translated():
            if self._is_cluster:
                node = self._client.get_node_from_key(self.root)
                found = self._client.execute_command("TIME", target_nodes=node)
            else:
                found = self._client.execute_command("TIME")
        return int(found[0]), int(found[1])

    def many(self, commands: Sequence[Sequence[str]]) -> list[Any]:
        """Send several commands that read; an error is one of the replies."""
        with self.translated():
            pipeline = self._client.pipeline() if self._is_cluster else self._client.pipeline(transaction=False)
            for command in commands:
                name, *parts = command
                encoded = [part.encode(errors="surrogateescape") for part in parts]
                pipeline.execute_command(name, *encoded, NEVER_DECODE=True)
            return list(pipeline.execute(raise_on_error=False)) if commands else []

    def document_ids(self) -> Iterator[str]:
        """The ids of all documents: one pass over the names of the server's keys, in steps that do not block it."""
        root = f"{self.root}doc:"
        pattern = "".join(f"\\{char}" if char in "*?[]\\^" else char for char in root) + "*"
        with self.translated():
            for key in self._client.scan_iter(match=pattern, count=1_000, NEVER_DECODE=True):
                yield decoded(key)[len(root) :]

    def remembered(self) -> Iterator[str]:
        """The ids of documents of which Rota remembers something: those that run or are retried."""
        with self.translated():
            for id_, _ in self._client.hscan_iter(f"{self.root}side", count=1_000):
                yield decoded(id_)

    def close(self) -> None:
        if self._is_ours:
            self._client.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except (RedisError, OSError) as err:
            raise translate(err, self._address) from err


def packed(value: Any) -> bytes:
    """A list for a script. Bytes of an id that are no text pass unchanged."""
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogateescape")


def decoded(value: Any) -> str:
    """A text of the server's; bytes that are no text survive a round trip."""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def _address(client: Any) -> str:
    """The server for people, without its password."""
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        return "the redis cluster"
    options = pool.connection_kwargs
    return f"redis at {options.get('path') or options.get('host', 'localhost')}:{options.get('port', 6379)}"
