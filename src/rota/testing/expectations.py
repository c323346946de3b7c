"""Compares the jobs that a test expects with those that were enqueued, and describes the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.jobs.payload import unpack_call
from rota.tasks.task import Overrides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.tasks.job import Job
    from rota.tasks.task import Task

    CallOf = Callable[[Job[Any]], tuple[Sequence[Any], dict[str, Any]]]  # the arguments that a caller gave

MOST_SHOWN = 20


def matching(
    jobs: Sequence[Job[Any]], task: Task[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any], given: CallOf
) -> list[Job[Any]]:
    """The jobs of a task with these arguments, by position or by name; without any, all jobs of the task."""
    mine = [job for job in jobs if job.task == task.name]
    if not args and not kwargs:
        return mine
    call = unpack_call(task.request(args, kwargs, Overrides()).payload)  # as JSON keeps them
    wanted = _canonical(task, call.args, call.kwargs)
    return [job for job in mine if _canonical(task, *given(job)) == wanted]


def mismatch(
    task: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    count: int,
    found: int,
    jobs: Sequence[Job[Any]],
    given: CallOf,
) -> str:
    """A text: what was expected, how many were found, and what was enqueued instead."""
    wanted = spelled(task, args, kwargs) if args or kwargs else task
    times = "1 job" if count == 1 else f"{count} jobs"
    return f"wanted {times} of {wanted}, found {found or 'none'}; {_listed(jobs, given)}"


def spelled(task: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call as Python code."""
    parts = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
    return f"{task}({', '.join(parts)})"


def _listed(jobs: Sequence[Job[Any]], given: CallOf) -> str:
    if not jobs:
        return "nothing was enqueued"
    lines = [f"  {spelled(job.task, *given(job))} is {job.state}" for job in jobs[:MOST_SHOWN]]
    more = [f"  … and {len(jobs) - MOST_SHOWN} more"] if len(jobs) > MOST_SHOWN else []
    return "\n".join(["enqueued were:", *lines, *more])


def _canonical(task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bytes | None:
    try:
        return task.signature.canonical(tuple(args), kwargs)
    except TypeError:
        return None  # enqueued under another signature
