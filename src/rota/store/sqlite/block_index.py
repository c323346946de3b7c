"""The block index: which blocks of 1,000 positions hold jobs of a queue and task, of a time, or jobs that
succeeded.

A usual index would cost an entry per job. This one costs an entry per block, and a list skips the blocks that have
nothing for it. An entry may be stale and is never missing: the queue, task, creation and position of a job never
change, and a success is added as it happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.micros import SECOND

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    Entry = tuple[str | int, ...]

BLOCK = 1_000
LATEST = 2**62  # after every time
MOST_KNOWN = 10_000
SLICE = 600 * SECOND  # of time


def blocks_of(positions: range) -> range:
    return range(positions.start // BLOCK, (positions.stop - 1) // BLOCK + 1)


class BlockIndex:
    """One namespace's blocks."""

    def __init__(self, namespace: str) -> None:
        self._jobs = f"{namespace}_job"
        self._kinds = f"{namespace}_kind_block"
        self._times = f"{namespace}_time_block"
        self._successes = f"{namespace}_success_block"
        self._known: set[Entry] = set()  # they are deleted only with blocks that get no new job
        self._fresh: list[Entry] = []
        self._first = 0  # the first block that the last deletion kept

    def add_one(self, connection: sqlite3.Connection, kind: tuple[str, str], created_at: int, position: int) -> None:
        """A job of this queue and task was created then. Most jobs follow another one of their kind."""
        block = position // BLOCK
        if (*kind, block) in self._known and (created_at // SLICE, block) in self._known:
            return
        self.add_kinds(connection, [kind], range(position, position + 1))
        self.add_times(connection, [created_at], range(position, position + 1))

    def add_kinds(self, connection: sqlite3.Connection, kinds: Iterable[tuple[str, str]], positions: range) -> None:
        """These positions were given to jobs of these queues and tasks."""
        blocks = blocks_of(positions)
        entries = [(queue, task, block) for queue, task in kinds for block in blocks]
        unknown = [entry for entry in entries if entry not in self._known]
        if unknown:
            connection.executemany(f"INSERT OR IGNORE INTO {self._kinds} VALUES (?, ?, ?)", unknown)
            self._fresh += unknown

    def add_times(self, connection: sqlite3.Connection, created_at: Iterable[int], positions: range) -> None:
        """These positions were given to jobs that were created then."""
        slices, blocks = {at // SLICE for at in created_at}, blocks_of(positions)
        unknown = [entry for slice_ in slices for block in blocks if (entry := (slice_, block)) not in self._known]
        if unknown:
            connection.executemany(f"INSERT OR IGNORE INTO {self._times} VALUES (?, ?)", unknown)
            self._fresh += unknown

    def void(self) -> None:
        """Nothing is known: the file is another one."""
        self._known.clear()
        self._fresh, self._first = [], 0

    def begin(self) -> None:
        """A transaction begins: what one that was rolled back added is forgotten."""
        self._fresh = []

    def fresh(self) -> list[Entry]:
        """What was added since it began."""
        return self._fresh

    def keep(self, entries: list[Entry]) -> None:
        """They are committed, and need not be written again."""
        if not entries:
            return
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known.update(entries)

    def add_successes(self, connection: sqlite3.Connection, blocks: Iterable[int]) -> None:
        rows = [(block,) for block in blocks]
        connection.executemany(f"INSERT OR IGNORE INTO {self._successes} VALUES (?)", rows)

    def forget(self, connection: sqlite3.Connection) -> None:
        """Delete blocks below the first job's, which get no job again. It reads all entries of kinds, once a block."""
        (first,) = connection.execute(f"SELECT min(seq) FROM {self._jobs}").fetchone()
        block = 0 if first is None else first // BLOCK
        if block > self._first:
            connection.execute(f"DELETE FROM {self._kinds} WHERE block < ?", (block,))
            connection.execute(f"DELETE FROM {self._times} WHERE block < ?", (block,))
            connection.execute(f"DELETE FROM {self._successes} WHERE block < ?", (block,))
            self._first = block

    def positions(self, connection: sqlite3.Connection, since: int | None, until: int | None) -> range:
        """The positions between which all jobs are that were created in since <= t < until."""
        slices = (0 if since is None else since // SLICE, LATEST if until is None else (until - 1) // SLICE)
        query = f"SELECT min(block), max(block) FROM {self._times} WHERE slice BETWEEN ? AND ?"
        first, last = connection.execute(query, slices).fetchone()
        return range(0) if first is None else range(first * BLOCK, (last + 1) * BLOCK)

    # Reading: the blocks that may have what is asked for, the newest first.

    def of_kinds(
        self, connection: sqlite3.Connection, conditions: list[str], values: list[Any], before: int
    ) -> Iterator[int]:
        """Those with jobs whose queue and task fulfil these conditions."""
        clause = " AND ".join([*conditions, "block <= ?"])
        query = f"SELECT DISTINCT block FROM {self._kinds} WHERE {clause} ORDER BY block DESC"
        return (block for (block,) in connection.execute(query, [*values, (before - 1) // BLOCK]))

    def of_successes(self, connection: sqlite3.Connection, before: int) -> Iterator[int]:
        query = f"SELECT block FROM {self._successes} WHERE block <= ? ORDER BY block DESC"
        return (block for (block,) in connection.execute(query, ((before - 1) // BLOCK,)))
