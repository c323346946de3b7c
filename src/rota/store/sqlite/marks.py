"""Marks: which blocks of a thousand places hold jobs of a queue and task, or jobs that succeeded.

An index would cost an entry per job; a mark costs one per block, and leads a list past the blocks that have nothing for
it. A mark may be stale, never missing: a job's queue, task and place never change, and success is noted as it happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    Mark = tuple[str, str, int]

BLOCK = 1_000
MOST_KNOWN = 10_000


def blocks_of(places: range) -> range:
    return range(places.start // BLOCK, (places.stop - 1) // BLOCK + 1)


class Marks:
    """One namespace's marks."""

    def __init__(self, namespace: str) -> None:
        self._jobs = f"{namespace}_job"
        self._kinds = f"{namespace}_kind_block"
        self._successes = f"{namespace}_success_block"
        self._known: set[Mark] = set()  # they go only with blocks that no new job comes to
        self._fresh: list[Mark] = []
        self._first = 0  # the block that the last cleaning began at

    def note_kinds(self, connection: sqlite3.Connection, kinds: Iterable[tuple[str, str]], places: range) -> None:
        """These places were given to jobs of these queues and tasks."""
        blocks = blocks_of(places)
        marks = [(queue, task, block) for queue, task in kinds for block in blocks]
        unknown = [mark for mark in marks if mark not in self._known]
        if unknown:
            connection.executemany(f"INSERT OR IGNORE INTO {self._kinds} VALUES (?, ?, ?)", unknown)
            self._fresh += unknown

    def void(self) -> None:
        """Nothing is known: the file is another one."""
        self._known.clear()
        self._fresh, self._first = [], 0

    def begin(self) -> None:
        """A transaction begins: what an earlier one noted in vain is forgotten."""
        self._fresh = []

    def fresh(self) -> list[Mark]:
        """What was noted since it began."""
        return self._fresh

    def keep(self, marks: list[Mark]) -> None:
        """They are written for good, and need not be again."""
        if not marks:
            return
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known.update(marks)

    def note_successes(self, connection: sqlite3.Connection, blocks: Iterable[int]) -> None:
        marks = [(block,) for block in blocks]
        connection.executemany(f"INSERT OR IGNORE INTO {self._successes} VALUES (?)", marks)

    def forget(self, connection: sqlite3.Connection) -> None:
        """Blocks below the first job's will never hold one again. It looks through all marks of kinds: once a block."""
        (first,) = connection.execute(f"SELECT min(seq) FROM {self._jobs}").fetchone()
        block = 0 if first is None else first // BLOCK
        if block > self._first:
            connection.execute(f"DELETE FROM {self._kinds} WHERE block < ?", (block,))
            connection.execute(f"DELETE FROM {self._successes} WHERE block < ?", (block,))
            self._first = block

    # Reading: the blocks worth a look, the newest first.

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
