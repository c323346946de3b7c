"""Failures: the attempts that went wrong while a kit drove the app."""

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
        """What a test raises for it: the task's own exception, if there is one."""
        return self.error or JobFailed(f"job {self.job.id} ({self.job.task}) failed: {self.text}")
