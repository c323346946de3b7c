"""The orders in which jobs are claimed and made ready, and the queues that a claim looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from rota.model.job import Job


def open_queues(queues: Iterable[str], paused: Container[str]) -> list[str]:
    """The queues of a request, once each, without those that are paused."""
    return [queue for queue in dict.fromkeys(queues) if queue not in paused]


def claim_order(job: Job) -> tuple[int, int]:
    """Higher priority first, then older first; several queues are one merged order."""
    return -job.priority, job.seq


def due_order(job: Job) -> tuple[int, int]:
    """Scheduled jobs become ready, and jobs created ahead are judged, in the order of their times."""
    return job.run_at, job.seq
