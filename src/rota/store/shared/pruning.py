"""Chooses the ended jobs that a round of upkeep deletes: those kept long enough, then the oldest that are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from rota.model.jobs.job import FINAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.jobs.job import State
    from rota.store.contract import Retention

EVER = 2**62  # after every instant


class Ended(NamedTuple):
    """What choosing needs to know of an ended job. In this order jobs are deleted: the first to have ended first."""

    finished_at: int
    seq: int
    id: str


class FindEnded(Protocol):
    """How a store finds ended jobs of one state by its index."""

    def __call__(self, state: State, through: int, limit: int, /) -> Iterable[Ended]:
        """Up to `limit` jobs that ended at or before `through`, the first to have ended first, without those whose
        unique key still holds."""


def jobs_to_prune(retention: Retention, limit: int, now: int, ended: int, find: FindEnded) -> list[str]:
    """The ids of at most `limit` jobs; `ended`: how many ended jobs the store has, those included whose key holds."""
    stale = _first(limit, (find(state, now - retention.kept_for(state), limit) for state in FINAL))
    surplus = min(ended - retention.most_finished, limit) - len(stale)
    if surplus <= 0:
        return [job.id for job in stale]
    known = set(stale)  # the oldest may be among them
    oldest = _first(surplus + len(stale), (find(state, EVER, surplus + len(stale)) for state in FINAL))
    return [job.id for job in (*stale, *[job for job in oldest if job not in known][:surplus])]


def _first(limit: int, found: Iterable[Iterable[Ended]]) -> list[Ended]:
    return sorted(job for jobs in found for job in jobs)[:limit]
