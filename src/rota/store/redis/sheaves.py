"""Sheaves: jobs that ended alike, told to the store and indexed there together, as one packed value.

What a worker reports is mostly this: jobs without a key or a schedule that succeeded at once. Two indexes would need an
entry for each of them; a sheaf has one in each, by its last place in line and by its first end. Jobs that are added
together are bound likewise by the scripts that accept them, as their places are known there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.state import State
from rota.store.redis.packing import fence_of, pack_bare_end
from rota.store.redis.wire import binary, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.settle import Change

SHEAF = b"\0"  # what their names begin with, and no job's id
LEAST_SHEAF = 4  # jobs: fewer are indexed one by one
LEAST_BATCH = 16  # the same of jobs that are added together
LINE_SHEAF = 50  # jobs that stand in line together at most: about what a worker takes
SPAN_BITS = 10  # all places of a sheaf lie in one span of 1,024, so that lists and removals know where to look
SHEAVES_AT_ONCE = 20  # entries of an index that scripts read at once where each may be a sheaf

_BARE = (State.SUCCEEDED, 1, None, 0, 0, None, None, b"", None, False, 1, None, None, None)


class _Group:
    """Bare ends of one queue, while they are being gathered."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._ids: list[str] = []
        self._seqs: list[int] = []
        self._ended: list[int | None] = []
        self._standings: list[bytes] = []
        self._facts: object = ()
        self._kinds = 0

    def put(self, change: Change, holder: str) -> None:
        """Most of a batch began together, ended together, and gave nothing back: those stand alike."""
        job = change.job
        facts = (change.started_at, change.finished_at, change.result)
        if facts != self._facts:
            self._facts, self._standing = facts, pack_bare_end(change, holder)
            self._kinds += 1
        self._ids.append(job.id)
        self._seqs.append(job.seq)
        self._ended.append(change.finished_at)
        self._standings.append(self._standing)

    def told(self, holder: str) -> dict[str, Any]:
        """As the exchange script takes it."""
        are_alike = self._kinds == 1
        return {
            "queue": self._queue,
            "fence": fence_of(1, holder),
            "sheaf": binary(encode((self._queue, self._ids, self._seqs, self._ended))),
            "last": str(max(self._seqs)),
            "first": str(min(ended or 0 for ended in self._ended)),
            "standing": binary(self._standing) if are_alike else False,
            "standings": [] if are_alike else [binary(standing) for standing in self._standings],
        }


def sorted_out(changes: Sequence[Change], holder: str) -> tuple[list[dict[str, Any]], list[Change]]:
    """Bare ends in groups, as the exchange script takes them, and all other changes."""
    if len({change.job.id for change in changes}) < len(changes):
        return [], list(changes)  # of two changes under one lease the first counts: that is looked at one by one
    groups: dict[tuple[str, int], _Group] = {}
    others: list[Change] = []
    for change in changes:
        if not _is_bare(change):
            others.append(change)
            continue
        kind = (change.job.queue, change.job.seq >> SPAN_BITS)
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = _Group(change.job.queue)
        group.put(change, holder)
    return [group.told(holder) for group in groups.values()], others


def _is_bare(change: Change) -> bool:
    """Whether this ends a first attempt well, and the job's record tells all else: nothing had become of it before."""
    job = change.job
    told = (
        change.state,
        change.attempts,
        change.queued_at,
        change.failures,
        change.deaths,
        change.cancel_reason,
        change.error,
        change.past,
        change.key,
        change.is_removal,
        job.lease_no,
        job.key,
        job.schedule_id,
        job.waits_for,
    )
    return told == _BARE and change.run_at == job.run_at
