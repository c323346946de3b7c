"""The database file: opened safely, written by one transaction at a time, its faults told in Rota's words."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_PATIENCE = 15.0  # seconds that a write waits for another process's transaction
LONGEST_PAUSE = 0.003  # seconds between two tries: transactions of others take a few milliseconds
OLDEST = (3, 35, 0)  # RETURNING came with it

_NO_SPACE = {"SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_WRITE"}  # what a full disk says where SQLite needs room to open
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs", "lustre"}


class _Reader:
    """A thread's own connection for reading; it is closed when the thread ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class Told:
    """SQLite's faults in our words at the border: what happened, and what to do next."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, _: object) -> None:
        if isinstance(err, sqlite3.Error):
            raise self._database.in_our_words(err) from err
        if isinstance(err, OSError):
            raise StoreUnavailable(f"cannot use {self._database.path}: {err.strerror}") from err


class Writing:
    """One transaction of the connection that writes. A class, not a generator: every verb pays for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> sqlite3.Connection:
        self._database.write_lock.acquire()
        try:
            with self._database.told:
                self._connection = self._database.begin()
        except BaseException:
            self._database.write_lock.release()
            raise
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: object) -> None:
        told = self._database.told
        try:
            with told:
                self._end(is_kept=err is None)
            told.__exit__(kind, err, trace)
        finally:
            self._database.write_lock.release()

    def _end(self, *, is_kept: bool) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if is_kept:
                connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


class Database:
    """One file. Threads share the writing connection under a lock and have a reading one each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write_lock = threading.RLock()
        self.told = Told(self)
        self._writer: sqlite3.Connection | None = None
        self._local = threading.local()
        self._readers: WeakSet[_Reader] = WeakSet()
        self._pid = os.getpid()

    def open(self) -> None:
        """Make the folder and the file where they are missing, for this user alone."""
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or newer is needed")
        if self._writer is not None:
            return
        with self.told:
            self._make_folder()
            refuse_network(self.path.parent)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._writer = self._connect()

    def close(self) -> None:
        with self.write_lock:
            for reader in list(self._readers):
                reader.connection.close()
            if self._writer is not None:
                self._writer.close()
            self._local = threading.local()
            self._writer = None

    def write(self) -> Writing:
        """A transaction that no other can interleave; committed at the end, or rolled back whole."""
        return Writing(self)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, which never waits for writers."""
        with self.told:
            yield self._reader()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """The same, where all that is read is of one moment, whatever is written meanwhile."""
        with self.read() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """A look at a file that is not open, whoever made it: nothing about it is changed."""
        with self.told:
            place = f"{self.path.as_uri()}?mode=ro"
            connection = sqlite3.connect(place, uri=True, isolation_level=None, timeout=LOCK_PATIENCE)
            try:
                yield connection
            finally:
                connection.close()

    def begin(self) -> sqlite3.Connection:
        """Take the write lock, waiting for other processes in small jittered steps."""
        connection = self._writer_here()
        deadline = time.monotonic() + LOCK_PATIENCE
        pause = 0.0005
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as err:
                if not _is_busy(err) or time.monotonic() > deadline:
                    raise
            else:
                return connection
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads waiters, guards nothing
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _writer_here(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            raise StoreError("this store was opened before a fork; open it anew in the child process")
        if self._writer is None:
            raise StoreUnavailable(f"the store {self.path} is closed")
        return self._writer

    def _reader(self) -> sqlite3.Connection:
        self._writer_here()
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = _Reader(self._connect())
            with self.write_lock:
                self._readers.add(reader)
        return reader.connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=LOCK_PATIENCE)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _make_folder(self) -> None:
        missing = [folder for folder in self.path.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)

    def in_our_words(self, err: sqlite3.Error) -> StoreError:
        text = str(err)
        if _is_busy(err):
            return StoreUnavailable(
                f"{self.path} has been locked by another process for {LOCK_PATIENCE:.0f} s; nothing was written. "
                "End the program that keeps a transaction open, then try again"
            )
        if "full" in text or getattr(err, "sqlite_errorname", "") in _NO_SPACE:
            return StoreUnavailable(f"no space is left for {self.path}; nothing was written. Free some, then go on")
        if "not a database" in text or "malformed" in text:
            return SchemaMismatch(f"{self.path} is not a SQLite database ({text}); name another file")
        if "readonly" in text or "unable to open" in text:
            return StoreUnavailable(
                f"cannot write {self.path}: {text}. Check the permissions of the file and its folder"
            )
        return StoreError(f"{self.path}: {text}")


def refuse_network(folder: Path) -> None:
    """SQLite's locks do not hold on network file systems."""
    kind = file_system_of(folder)
    if kind in _NETWORK:
        raise StoreError(
            f"{folder} is on a network file system ({kind}), where SQLite's locks do not hold; "
            "use a local disk, or a server store such as postgresql://"
        )


def file_system_of(folder: Path) -> str:
    """The kind of file system a folder is on, where the system tells."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    mounts = [(parts[1], parts[2]) for line in lines if len(parts := line.split()) > 2]
    place = str(folder.resolve())
    holding = [(point, kind) for point, kind in mounts if place == point or place.startswith(point.rstrip("/") + "/")]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def _is_busy(err: sqlite3.Error) -> bool:
    return "locked" in str(err) or "busy" in str(err)
