"""Records the arguments that callers give, before the middleware of the app under test changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.tasks.middleware import Middleware

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.tasks.job import Job
    from rota.tasks.middleware import JobDraft


class GivenCalls(Middleware):
    """The outermost middleware of an app in a kit, if the app has others."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[Sequence[Any], dict[str, Any]]] = {}  # by job

    def create(self, jobs: Sequence[JobDraft], call_next: Callable[[Sequence[JobDraft]], Sequence[Job[Any]]]) -> None:
        for draft, job in zip(jobs, call_next(jobs), strict=False):  # templates of schedules make no jobs
            self._calls.setdefault(job.id, (draft.args, dict(draft.kwargs)))

    def call_of(self, job: Job[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """What the caller of a job gave; what is stored if nothing changed it."""
        return self._calls.get(job.id) or (job.args, job.kwargs)
