"""Defines the failures that a kit records while it runs the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.errors import JobFailed, RotaError

if TYPE_CHECKING:
    from datetime import datetime

    from rota.tasks.job import Job


class RunawayJobs(RotaError):
    """Jobs keep making jobs at one instant: a task that enqueues itself without a delay, most likely."""


class Failure(NamedTuple):
    """One attempt that failed; the job may have been tried again since."""

    job: Job[Any]
    attempt: int
    at: datetime
    text: str  # one line, then the traceback
    error: BaseException | None  # what the task raised; None for a timeout, a bad result or bad arguments

    @property
    def cause(self) -> BaseException:
        """The exception to raise in a test: the task's own, if there is one."""
        return self.error or JobFailed(f"job {self.job.id} ({self.job.task}) failed: {self.text}")
