"""Turns jobs into the results of Django's tasks. The classes are passed in: two packages have them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils import timezone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rota.client.jobs import History
    from rota.tasks.job import Job

NAME = "django.task"
STATUSES = {"running": "RUNNING", "succeeded": "SUCCESSFUL", "failed": "FAILED", "cancelled": "FAILED"}  # else READY
_LAST_LINE = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")


class Call(NamedTuple):
    """The arguments of the job: which function is called, with what, for which backend."""

    path: str
    args: list[Any]
    kwargs: dict[str, Any]
    backend: str

    @classmethod
    def read(cls, args: Sequence[Any]) -> Call | None:
        return cls(*args) if len(args) == len(cls._fields) else None


def result_of(
    values: Any,
    task: Any,
    call: Call,
    *,
    job: Job[Any] | None = None,
    history: History = (),  # type: ignore[assignment]  # it is only iterated
    job_id: str = "",
    enqueued_at: datetime | None = None,
) -> Any:
    """The result of a job, or of one that was just enqueued."""
    state = job.state if job is not None else "queued"
    runs = [line for line in history if line.state == "running"]
    found = values.TaskResult(
        task=task,
        id=job.id if job is not None else job_id,
        status=values.TaskResultStatus[STATUSES.get(state, "READY")],
        enqueued_at=job.created_at if job is not None else enqueued_at,
        started_at=runs[0].at if runs else None,
        last_attempted_at=runs[-1].at if runs else None,
        finished_at=job.finished_at if job is not None else None,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        errors=[error_of(values, job.error)] if job is not None and job.error else [],
        worker_ids=[str((line.data or {}).get("worker") or line.reason) for line in runs],
    )
    if job is not None and state == "succeeded":
        object.__setattr__(found, "_return_value", job.result(0))
    return found


def running_result(values: Any, task: Any, call: Call, job_id: str, attempt: int) -> Any:
    """What a task that takes its context sees of itself."""
    now = timezone.now()
    return values.TaskResult(
        task=task,
        id=job_id,
        status=values.TaskResultStatus.RUNNING,
        enqueued_at=None,
        started_at=now,
        last_attempted_at=now,
        finished_at=None,
        args=call.args,
        kwargs=call.kwargs,
        backend=call.backend,
        errors=[],
        worker_ids=["this worker"] * attempt,
    )


def end_result(values: Any, found: Any, status: str) -> None:
    """Say how an attempt ended, for those who listen to Django's signal."""
    object.__setattr__(found, "status", values.TaskResultStatus[status])
    object.__setattr__(found, "finished_at", timezone.now())


def error_of(values: Any, text: str) -> Any:
    """An error as it is kept: its last line names the class, with its module unless it is a builtin."""
    return values.TaskError(exception_class_path=class_path(text), traceback=text)


def class_path(text: str) -> str:
    """The path of the exception that a traceback ends with."""
    for line in reversed(text.splitlines()):
        found = _LAST_LINE.match(line)
        if found is not None:
            return found[1] if "." in found[1] else f"builtins.{found[1]}"
    return "builtins.Exception"
