"""Decides whether a schedule comes more often than its task can run."""

from __future__ import annotations

from itertools import pairwise
from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import Job


def usual_duration(jobs: Iterable[Job]) -> int | None:
    """How long a run of these takes, in microseconds: the median of those that have one."""
    spans = [job.finished_at - job.started_at for job in jobs if job.finished_at and job.started_at]
    return median_low(spans) if spans else None


def shortest_gap(runs: Sequence[int]) -> int | None:
    """The shortest time between two runs that follow each other."""
    return min((later - run for run, later in pairwise(runs)), default=None)


def is_too_fast(usual: int | None, gap: int | None) -> bool:
    """Whether a run usually still runs when the next is due."""
    return usual is not None and gap is not None and usual > gap
