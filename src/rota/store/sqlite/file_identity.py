"""Notices that a file was replaced, deleted or set back under the processes that use it.

SQLite itself does not: it writes on into a file that was unlinked, and everything accepted there is lost. Two facts are
compared in each write transaction. The identity of the file and of its two companions (device and inode) shows
that a file was moved, deleted or replaced by another. A row that each handle renews shows that the content of the same
file went back to an earlier state: a backup does not have the last row.
"""

from __future__ import annotations

import os
import sqlite3
import time
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from rota.clock import utc_micros
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from pathlib import Path

RENEW = 1.0  # seconds between two renewals of a handle's row: content that went back by less than that is not noticed
KEPT = 7 * 86_400.0  # seconds for which the row of a handle that does not write is kept
LOOKS, LOOK = 3, 0.1  # how often the file itself must say that it went back, and seconds between two looks
_PREFIX = "epoch:"

Identity = tuple[int, int]  # device and inode


def identity_of(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - it is text already
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_there(path: Path) -> bool:
    """Whether the file is there; an error if only its -wal file is: SQLite would empty that beside a new file."""
    has_wal = os.path.exists(f"{os.path.realpath(path)}-wal")  # noqa: PTH110 - before the file: that is made first
    if path.exists():
        return True
    if has_wal:
        raise StoreUnavailable(
            f"{path} is missing, but its -wal file is there: the file was moved away or deleted while in use. Put it "
            "back, or delete the -wal and -shm files to begin with an empty store"
        )
    return False


class FileWatch:
    """Which files a connection was opened on, and whether they still are at their paths."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._companions = (f"{path}-wal", f"{path}-shm")
        self._file: Identity | None = None
        self._beside: tuple[Identity | None, ...] = ()

    def remember(self) -> None:
        """A connection has just been opened and has read: what it uses are these files."""
        self._file = identity_of(self._path)
        self._beside = tuple(identity_of(path) for path in self._companions)

    def forget_companions(self) -> None:
        """The connection is closed: another file may get the identity of one that SQLite has deleted."""
        self._beside = ()

    def look(self) -> os.stat_result | None:
        """The file at the path; None if another one, or none, is where the open one was."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - each transaction asks, and a Path costs twice as much
        except FileNotFoundError:
            return None
        return found if self._file == (found.st_dev, found.st_ino) else None

    def has_lost_companions(self) -> bool:
        """Whether the file is the same, but its -wal or -shm file is gone or another one; asked in a transaction."""
        return tuple(identity_of(path) for path in self._companions) != self._beside

    def remove_old_companions(self) -> None:
        """Where another file is at the path: SQLite would write the old one's -wal file into it."""
        new = identity_of(self._path)
        if new is None or new == self._file:
            return
        for path, mine in zip(self._companions, self._beside, strict=False):
            if mine is not None and identity_of(path) == mine:
                os.unlink(path)  # noqa: PTH108 - it is text already

    def has_no_companions(self) -> bool:
        return all(identity_of(path) is None for path in self._companions)


class Seen(NamedTuple):
    """What the file itself held when it was last looked at past its -wal file."""

    changed_at: int
    size: int
    number: int | None  # of this handle's row


class Epoch:
    """One handle's row in the file: a number that rises while the handle writes."""

    def __init__(self, namespace: str, path: Path) -> None:
        self._meta = f"{namespace}_meta"
        self._path = path
        self._select = f"SELECT value FROM {self._meta} WHERE name = ?"
        self.reset()

    def reset(self) -> None:
        """Begin again on the content that is there now, or in another process.

        The row gets a new name: a forked process has one of its own, and a backup may hold the old one.
        """
        self._name = f"{_PREFIX}{token_hex(8)}"
        self._number = 0  # the last one that was committed; 0: no row yet
        self._next = 0  # the one that the transaction under way writes
        self._value = ""  # what was written last, committed or not
        self._renewed_at = time.monotonic()  # a handle that lives shorter than RENEW leaves no row
        self._seen: Seen | None = None

    def went_back(self, connection: sqlite3.Connection) -> bool:
        """Whether the content, as a write transaction sees it, is older than what this handle wrote."""
        if not self._number:
            return False
        row = self._row(connection)
        if row is not None and (row[0] == self._value or _number(row[0]) in {self._number, self._next}):
            return False
        is_pruned = row is None and time.monotonic() > self._renewed_at + KEPT / 2
        if is_pruned:
            self.reset()
        return not is_pruned

    def was_overwritten(self, found: os.stat_result) -> bool:
        """Whether the file below the -wal file went back: then SQLite mixes two states, and must not be used.

        Only what changes the file's times leads to a look: a checkpoint, or a program that writes over the file.
        """
        before = self._seen
        if not self._number:
            return False
        if before is not None and before.changed_at == found.st_ctime_ns and before.size == found.st_size:
            return False
        least = before.number if before else None
        number = self._number_below()
        looks = 1
        while least is not None and (number is None or number < least):
            if looks == LOOKS:
                return True
            time.sleep(LOOK)  # a checkpoint of another process may be half-way through
            number, looks = self._number_below(), looks + 1
        self._seen = Seen(found.st_ctime_ns, found.st_size, number)
        return False

    @property
    def is_due(self) -> bool:
        """Whether the row is due to be renewed; what need not be looked at in each transaction is looked at then."""
        return time.monotonic() >= self._renewed_at + RENEW

    def renew(self, connection: sqlite3.Connection) -> None:
        """Write the next number: the last one is old."""
        if not self._number:
            self._prune(connection)
        self._next = self._number + 1
        self._value = f"{self._next} {utc_micros() // SECOND}"
        connection.execute(f"INSERT OR REPLACE INTO {self._meta} VALUES (?, ?)", (self._name, self._value))

    def keep(self) -> None:
        """The transaction was committed."""
        if self._next > self._number:
            self._number, self._renewed_at = self._next, time.monotonic()

    def _row(self, connection: sqlite3.Connection) -> tuple[str] | None:
        try:
            row: tuple[str] | None = connection.execute(self._select, (self._name,)).fetchone()
        except sqlite3.OperationalError as err:
            if "no such table" in str(err):  # it went back to before the store was made
                return None
            raise
        return row

    def _number_below(self) -> int | None:
        """The number in the file itself, without its -wal file; None if it cannot be read just now."""
        url = f"{self._path.as_uri()}?immutable=1"
        try:
            connection = sqlite3.connect(url, uri=True, isolation_level=None)
            try:
                row = connection.execute(self._select, (self._name,)).fetchone()
            finally:
                connection.close()
        except sqlite3.Error:  # a checkpoint is under way
            return self._seen.number if self._seen else None
        return None if row is None else _number(row[0])

    def _prune(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute(
            f"SELECT name, value FROM {self._meta} WHERE name >= ? AND name < ?", (_PREFIX, f"{_PREFIX}~")
        )
        oldest = utc_micros() / SECOND - KEPT
        old = [(name,) for name, value in rows.fetchall() if float(value.partition(" ")[2]) < oldest]
        connection.executemany(f"DELETE FROM {self._meta} WHERE name = ?", old)


def _number(value: str) -> int:
    return int(value.partition(" ")[0])
