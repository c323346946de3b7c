"""The database file: opened safely, and written by one transaction at a time."""

from __future__ import annotations

import logging
import os
import random
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn
from weakref import WeakSet

from rota.errors import SchemaMismatch, StoreError, StoreReplaced, StoreUnavailable
from rota.store.shared import forks
from rota.store.shared.files import file_system_of
from rota.store.shared.forks import abandon
from rota.store.sqlite.faults import LOCK_PATIENCE, is_busy, locked, translate
from rota.store.sqlite.file_identity import FileWatch, is_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rota.store.sqlite.file_identity import Epoch

log = logging.getLogger("rota.store.sqlite")

LONGEST_PAUSE = 0.003  # seconds between two tries: transactions of others take a few milliseconds
OLDEST = (3, 35, 0)  # RETURNING came with it

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs", "lustre"}


REPLACED = (
    "{path} was replaced, deleted or moved while it was in use: what was written last may be lost, and nothing more is "
    "written to the old file. The file that is there now is opened by the next call"
)
SET_BACK = (
    "{path} went back to an earlier state while it was in use: a backup was restored into it. Nothing was written; the "
    "next call goes on with what is there now, if its schema fits"
)
OVERWRITTEN = (
    "{path} was written over by another program while it was in use, and its -wal file belongs to the content before: "
    "nothing more is written. Stop every process that uses it, delete its -wal and -shm files, restore the backup "
    "again, and start them"
)
COMPANIONS_GONE = (
    "the -wal or -shm file of {path} was deleted or replaced while it was in use: nothing more is written. Stop every "
    "process that uses it, restore a backup if the file was restored, and start them"
)


class _Reader:
    """A thread's own connection for reading; it is closed when the thread ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.is_closed = False
        self.is_stale = False  # its file is no longer at its path, or it was opened before a fork
        # Held during a read: a connection that another thread closes meanwhile crashes the process. A signal handler
        # may read in the middle of its own thread's read.
        self.lock = threading.RLock()
        self.reads = 0  # in progress, of the thread that has the lock

    def close(self, deadline: float) -> bool:
        """Close it once its thread does not use it; False if that takes too long, or if this is that thread."""
        if not self.lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            return False
        try:
            if self.reads:
                return False
            self.is_closed = True
            self.connection.close()
        finally:
            self.lock.release()
        return True

    def __del__(self) -> None:
        if self.is_stale:
            abandon(self.connection)
        else:
            self.connection.close()


class Translated:
    """Translates SQLite's faults at the border: what happened, and what to do next."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, _: object) -> None:
        if isinstance(err, sqlite3.Error):
            raise translate(err, self._database.path) from err
        if isinstance(err, OSError):
            raise StoreUnavailable(f"cannot use {self._database.path}: {err.strerror}") from err


class Database(forks.Forked):
    """One file. Threads share the writing connection under a lock and have a reading one each.

    `reopened` is called when the file was replaced and the new one is about to be used.
    """

    def __init__(self, path: Path, reopened: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self.write_lock = threading.RLock()
        self.translated = Translated(self)
        self._epoch: Epoch | None = None
        self._reopened = reopened
        self._watch = FileWatch(path)
        self.was_opened = False
        self._is_open = False
        self._is_paused = False  # closed for a fork; the next call opens it again
        self._broken = ""  # why the file must not be used as it is
        self._writer: sqlite3.Connection | None = None
        self._local = threading.local()
        self._readers: WeakSet[_Reader] = WeakSet()
        forks.register(self)

    def open(self) -> None:
        """Make the folder and the file where they are missing, for this user alone."""
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or newer is needed")
        if self._writer is not None:
            return
        self.was_opened = True
        with self.translated:
            self._make_folder()
            refuse_network(self.path.parent)
            if not is_there(self.path):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._open_writer()

    def keep_watch(self, epoch: Epoch) -> None:
        """From now on, notice content that goes back: the tables that this needs are there."""
        self._epoch = epoch

    def close(self) -> None:
        with self.write_lock:
            self._is_open = False
            if not self._is_safe_to_close():
                self._forsake()
                self._watch.remove_old_companions()
                return
            deadline = time.monotonic() + LOCK_PATIENCE
            for reader in list(self._readers):
                reader.close(deadline)  # if its thread reads for longer, it is closed when that thread ends its read
            if self._writer is not None:
                self._writer.close()
            self._local = threading.local()
            self._writer = None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other can interleave; committed at the end, or rolled back whole.

        A signal handler may raise at every call, and before the first step of a function of Python. Whatever it
        interrupts, no transaction stays open and no lock stays held: no thread and no other process could write then.
        """
        deadline, connection = time.monotonic() + LOCK_PATIENCE, None
        try:
            if not self.write_lock.acquire(timeout=LOCK_PATIENCE):  # its holder waits for another process
                raise locked(self.path)
            with self.translated:
                try:
                    connection = self.begin(deadline)
                    yield connection
                    connection.execute("COMMIT")
                    self.check_kept()
                finally:
                    if connection is not None and connection.in_transaction:
                        connection.execute("ROLLBACK")
        finally:
            try:  # noqa: SIM105 - suppress() is a function of Python
                self.write_lock.release()
            except RuntimeError:  # this thread did not get it
                pass

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, which never waits for writers."""
        with self.translated:
            while True:
                reader = self._reader()
                with reader.lock:
                    if reader.is_closed:  # for a fork, meanwhile
                        continue
                    reader.reads += 1
                    try:
                        yield reader.connection
                    finally:
                        reader.reads -= 1
                    return

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """The same, where all that is read is of one moment, whatever is written meanwhile."""
        with self.read() as connection:
            if connection.in_transaction:  # a signal handler reads in the middle of its own thread's snapshot
                yield connection
                return
            try:
                connection.execute("BEGIN")
                yield connection
            finally:  # also if a signal handler raised when it had begun: later reads would see nothing new
                if connection.in_transaction:
                    connection.execute("COMMIT")

    @contextmanager
    def look(self, how: str = "mode=ro") -> Iterator[sqlite3.Connection]:
        """A look at a file that is not open, and that another program may have made: nothing about it is changed."""
        with self.translated, self.write_lock:  # no fork happens meanwhile
            url = f"{self.path.as_uri()}?{how}"
            connection = sqlite3.connect(url, uri=True, isolation_level=None, timeout=LOCK_PATIENCE)
            try:
                yield connection
            finally:
                connection.close()

    def data_version(self) -> int | None:
        """A number that changes when another connection commits; None if it cannot be read now."""
        try:
            with self.read() as connection:
                (version,) = connection.execute("PRAGMA data_version").fetchone()
        except StoreError:
            return None
        return int(version)

    def begin(self, deadline: float) -> sqlite3.Connection:
        """Take the write lock, waiting for other processes in small jittered steps."""
        connection = self._writer_here()
        if connection.in_transaction:
            raise StoreError(f"{self.path} cannot be written to in the middle of this thread's own write")
        try:
            self._wait_for_file(connection, deadline)
            self._check(connection)
        except BaseException:
            if connection.in_transaction:  # an interrupt, too, can come when it has begun
                connection.execute("ROLLBACK")
            raise
        return connection

    def _wait_for_file(self, connection: sqlite3.Connection, deadline: float) -> None:
        pause = 0.0005
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as err:
                if not is_busy(err) or time.monotonic() > deadline:
                    raise
            else:
                return
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads waiters, guards nothing
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def check_kept(self) -> None:
        """What was just committed went into the file that is at the path."""
        if self._epoch is not None:
            self._epoch.keep()
        if self._watch.look() is None:
            self._lose(REPLACED)

    def before_fork(self) -> forks.Lock | None:
        """Close all connections, once no thread uses them. The next call opens them again, also in the parent.

        SQLite keeps a list of the locks that its process holds. A child inherits the list, but not the locks. Whatever
        it opened then, others would take for unused: they would delete the -wal file that the child writes to.
        """
        lock = self.write_lock
        if not lock.acquire(timeout=LOCK_PATIENCE):
            log.warning("forked while %s was being written: close the store before a fork", self.path)
            return None
        try:
            self._pause(time.monotonic() + LOCK_PATIENCE)
        except sqlite3.Error as err:
            log.warning("forked while %s could not be closed (%s): close the store before a fork", self.path, err)
        return lock

    def after_fork(self) -> None:
        """In a child: the next call opens the file. What before_fork() could not close stays as it is."""
        self.write_lock = threading.RLock()  # the parent's is held, by a thread that the child may not have
        broken = self._broken
        self._forsake()
        self._broken = broken if broken != SET_BACK else ""  # its schema is looked at when it is opened
        if self._epoch is not None:
            self._epoch.reset()

    def _pause(self, deadline: float) -> None:
        writer = self._writer
        if writer is None or writer.in_transaction or self._broken or not self._is_safe_to_close():
            return
        if not all(reader.close(deadline) for reader in list(self._readers)):
            log.warning("forked while %s was being read: close the store before a fork", self.path)
            return
        writer.close()
        self._watch.forget_companions()
        self._writer, self._is_paused = None, True
        self._local, self._readers = threading.local(), WeakSet()

    def _writer_here(self) -> sqlite3.Connection:
        if self._writer is None or self._broken:
            self._open_again()
        assert self._writer is not None  # noqa: S101 - for the type checker
        return self._writer

    def _reader(self) -> _Reader:
        if self._writer is None or self._broken:
            with self.write_lock:
                self._writer_here()
        if self._watch.look() is None:
            with self.write_lock:
                if self._watch.look() is None:  # else another thread was faster
                    self._lose(REPLACED)
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None or reader.is_closed:
            with self.write_lock:
                self._writer_here()  # a fork may have closed it meanwhile
                reader = self._local.reader = _Reader(self._connect())
                self._readers.add(reader)
        return reader

    # A file that was replaced.

    def _check(self, connection: sqlite3.Connection) -> None:
        """A write transaction has begun: the file is the one at the path, and its content never went back."""
        why = self._what_happened(connection)
        if why is not None:
            connection.execute("ROLLBACK")
            self._lose(why)

    def _what_happened(self, connection: sqlite3.Connection) -> str | None:
        """Why nothing may be written; None if all is well. The row of this handle is renewed where it is due."""
        found = self._watch.look()
        if found is None:
            return REPLACED
        epoch = self._epoch
        if epoch is None:
            return None
        if epoch.went_back(connection):
            return SET_BACK
        if epoch.was_overwritten(found):
            return OVERWRITTEN
        if epoch.is_due:
            if self._watch.has_lost_companions():
                return COMPANIONS_GONE
            epoch.renew(connection)
        return None

    def _lose(self, why: str) -> NoReturn:
        """Stop writing, and say so; the next call goes on with what is at the path then, if that is safe."""
        err = StoreReplaced(why.format(path=self.path))
        log.error("%s", err)
        if why == REPLACED:
            self._forsake()
        else:
            self._broken = why
        if why == SET_BACK:
            self._go_on()
        raise err

    def _go_on(self) -> None:
        """Use content that was set back by SQLite's own means, if its schema fits: the connections see it whole."""
        self._start_over()
        self._broken = ""

    def _start_over(self, *, is_other: bool = False) -> None:
        """Void what is known of the content before; refuse one that this code cannot use."""
        if self._epoch is not None and not self._is_paused:
            self._epoch.reset()
        try:
            if is_other:
                self._check_whole()
            self._reopened()
        except SchemaMismatch as err:
            raise StoreUnavailable(f"nothing is written to the file that is there now: {err}") from err

    def _is_safe_to_close(self) -> bool:
        """Whether SQLite may end as it does: it writes the -wal file that it has open into the file, and deletes it."""
        if self._watch.look() is None:
            return False
        if self._broken in {"", SET_BACK}:
            return True
        found = self._watch.look()
        is_overwritten = self._epoch is not None and found is not None and self._epoch.was_overwritten(found)
        return self._broken == COMPANIONS_GONE and self._watch.has_no_companions() and not is_overwritten

    def _forsake(self) -> None:
        """Leave the connections open until the process ends. The last one that is closed would delete the -wal file by
        its name, and that is the new file's by now; and SQLite forbids to close in a child what its parent opened."""
        for reader in list(self._readers):
            reader.is_stale = True
        if self._writer is not None:
            abandon(self._writer)
        self._writer, self._broken, self._is_paused = None, "", False
        self._local, self._readers = threading.local(), WeakSet()

    def _open_again(self) -> None:
        """Open the file that took the place of the one before, once it is there and whole."""
        if not self._is_open:
            raise StoreUnavailable(f"the store {self.path} is closed")
        is_other = self._watch.look() is None
        if self._broken == SET_BACK and not is_other:
            self._go_on()
            return
        if self._broken and not is_other:
            raise StoreReplaced(self._broken.format(path=self.path))
        if self._is_paused and is_other:
            self._lose(REPLACED)
        if self._broken:
            self._forsake()
        if not self.path.exists():
            raise StoreUnavailable(
                f"{self.path} was deleted or moved away; put the file back, or restore a backup there"
            )
        self._watch.remove_old_companions()
        self._start_over(is_other=is_other)
        self._open_writer()

    def _check_whole(self) -> None:
        """A file that is still being copied looks like an empty or a broken one."""
        with self.look("immutable=1") as connection:  # the file itself: a -wal file may make it longer
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (size,) = connection.execute("PRAGMA page_size").fetchone()
        if pages == 0 or self.path.stat().st_size < pages * size:
            raise StoreUnavailable(f"{self.path} is empty, or still being copied; nothing is written there yet")

    def _open_writer(self) -> None:
        self._writer = self._connect()
        self._writer.execute("SELECT 1 FROM sqlite_master").fetchone()  # opens the -wal file, also of a new database
        self._watch.remember()
        self._is_open, self._is_paused = True, False

    def _connect(self) -> sqlite3.Connection:
        url = f"{self.path.as_uri()}?mode=rw"  # open() alone makes a file: this one may have been moved away since
        connection = sqlite3.connect(
            url, uri=True, isolation_level=None, check_same_thread=False, timeout=LOCK_PATIENCE
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _make_folder(self) -> None:
        missing = [folder for folder in self.path.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)


def refuse_network(folder: Path) -> None:
    """SQLite's locks do not hold on network file systems."""
    kind = file_system_of(folder)
    if kind in _NETWORK:
        raise StoreError(
            f"{folder} is on a network file system ({kind}), where SQLite's locks do not hold; "
            "use a local disk, or a server store such as postgresql://"
        )
