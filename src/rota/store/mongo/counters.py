"""Counters: written right after what they count; a few rows per queue, so that writers rarely meet.

Ready and running jobs are kept as one number, `open`, so that claiming and giving back count nothing; how many of them
run is counted by the index of leases, which is as small as the work that is being done.

A process that dies between its jobs and its counters leaves them off by its last batch. Upkeep sets them right: it
counts, and where the difference is the same twice in a row with no counter written in between, nobody is in the middle
of anything and the difference is taken away.
"""

from __future__ import annotations

import secrets
from collections import Counter
from threading import get_ident
from typing import TYPE_CHECKING, Any

from pymongo import UpdateOne

from rota.model.micros import SECOND
from rota.model.state import FINAL, State
from rota.store.mongo.wire import SENT, Command, updating
from rota.store.shared.counting import Counts

if TYPE_CHECKING:
    from rota.store.mongo.space import Document, Space

OPEN = "open"
ROWS = 16  # per queue
LOOK_EVERY = 600 * SECOND  # a fresh count reads every job
SETTLED_AFTER = 20 * SECOND  # longer than any verb may take

_OPEN_STATES = {State.QUEUED.value, State.RUNNING.value}


class Counters:
    """One namespace's counters, written by one handle."""

    def __init__(self) -> None:
        self._handle = secrets.randbits(32)
        self._suspicion: tuple[int, int, dict[tuple[str, str], int]] | None = None  # when, writes so far, by how much
        self._looked_at: int | None = None

    def updates(self, counts: Counts) -> list[Document]:
        """What a step's counts change in the rows, as parts of an update command."""
        changes: dict[str, Counter[str]] = {}
        for queue, name, number in counts.rows():
            changes.setdefault(queue, Counter())[_kept_name(name)] += number
        return [
            {
                "q": {"_id": f"{self._row()}:{queue}"},
                "u": {"$inc": {"writes": 1, **{f"n.{name}": number for name, number in change.items() if number}}},
                "upsert": True,
            }
            for queue, change in changes.items()
        ]

    def read(self, space: Space) -> Counts:
        """The sums, with the open jobs told apart."""
        kept, _ = _sums(space)
        running = _running(space)
        for queue in {queue for queue, name in kept if name == OPEN} | set(running):
            number = running.get(queue, 0)
            kept[queue, State.RUNNING.value] = number
            kept[queue, State.QUEUED.value] = kept.pop((queue, OPEN), 0) - number
        return Counts(dict(kept))

    def ended(self, space: Space) -> int:
        """How many ended jobs are kept."""
        kept, _ = _sums(space)
        names = {state.value for state in FINAL}
        return sum(number for (_, name), number in kept.items() if name in names)

    def differences(self, space: Space) -> dict[str, int]:
        return {
            f"{queue}/{'queued' if name == OPEN else name}": number
            for (queue, name), number in _differences(space)[0].items()
        }

    def set_right(self, space: Space, now: int) -> None:
        """Take away a difference that was seen twice while nobody counted; from time to time."""
        if self._suspicion is None and self._looked_at is not None and now < self._looked_at + LOOK_EVERY:
            return
        since = self._suspicion[0] if self._suspicion else None
        if since is not None and now < since + SETTLED_AFTER:
            return
        self._looked_at = now
        off, writes = _differences(space)
        if self._suspicion and self._suspicion[1:] == (writes, off):
            _take_away(space, off, writes)
            off = {}
        self._suspicion = (now, writes, off) if off else None

    def _row(self) -> int:
        return hash((self._handle, get_ident())) % ROWS


def write(space: Space, updates: list[Document]) -> None:
    if updates:
        space.counts.bulk_write([UpdateOne(part["q"], part["u"], upsert=True) for part in updates], ordered=False)


def command(space: Space, updates: list[Document]) -> Command:
    """The same as one command."""
    return updating(space.counts, updates, SENT)


def _kept_name(name: str) -> str:
    return OPEN if name in _OPEN_STATES else name


def _sums(space: Space) -> tuple[Counter[tuple[str, str]], int]:
    """All rows together, and how often they were written."""
    kept: Counter[tuple[str, str]] = Counter()
    writes = 0
    for row in space.counts.find():
        queue = str(row["_id"]).partition(":")[2]
        writes += int(row.get("writes", 0))
        for name, number in row.get("n", {}).items():
            kept[queue, name] += int(number)
    return kept, writes


def _running(space: Space) -> dict[str, int]:
    rows = space.jobs.aggregate(
        [{"$match": {"state": "running"}}, {"$group": {"_id": "$queue", "n": {"$sum": 1}}}], hint="leased"
    )
    return {row["_id"]: int(row["n"]) for row in rows}


def _differences(space: Space) -> tuple[dict[tuple[str, str], int], int]:
    """How far the rows are from a fresh count, and how often they were written: below zero where they just were."""
    _, before = _sums(space)
    groups = space.jobs.aggregate(
        [
            {"$match": {"state": {"$exists": True}}},
            {"$group": {"_id": {"queue": "$queue", "state": "$state"}, "n": {"$sum": 1}}},
        ]
    )
    counted: Counter[tuple[str, str]] = Counter()
    for group in groups:
        counted[str(group["_id"].get("queue")), _kept_name(str(group["_id"]["state"]))] += int(group["n"])
    kept, writes = _sums(space)
    off = {key: kept[key] - counted[key] for key in kept.keys() | counted.keys() if not key[1].startswith("total:")}
    return {key: number for key, number in off.items() if number}, writes if before == writes else -writes


def _take_away(space: Space, off: dict[tuple[str, str], int], writes: int) -> None:
    """Once, however many look: the row that takes it away is named after the writes that led here."""
    changes: dict[str, dict[str, Any]] = {}
    for (queue, name), number in off.items():
        changes.setdefault(queue, {})[name] = -number
    for queue, change in changes.items():
        space.counts.update_one(
            {"_id": f"upkeep-{writes}:{queue}"}, {"$setOnInsert": {"writes": 1, "n": change}}, upsert=True
        )
