"""A job's history: every move as one line. The current attempt's moves are fields, earlier ones are packed.

Every line has a reason and data. What a job's own fields say for as long as it lives (its queue and priority) is not
packed, but added when the history is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.jobs.job import Move, pack_moves, unpack_moves
from rota.model.jobs.state import State
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.jobs.job import Job


def history_of(job: Job) -> list[Move]:
    """Every line, oldest first, each with its data."""
    return [line if line.data is not None else line._replace(data=_data_of(job, line.state)) for line in _lines_of(job)]


def folded(job: Job, *lines: Move) -> bytes:
    """The packed past once the current attempt has ended and these lines follow."""
    return pack_moves(_in_order([*_lines_of(job), *lines]))


def _lines_of(job: Job) -> list[Move]:
    closed = closed_lines(job)
    return _in_order([*closed, *_open_lines(job, closed[-1].state)])


def _data_of(job: Job, state: State) -> dict[str, Any]:
    """What is known of a line that was packed without data."""
    return {"queue": job.queue, "priority": job.priority} if state is State.QUEUED else {}


def closed_lines(job: Job) -> list[Move]:
    """The lines of earlier attempts; a job that was simply enqueued has its first line implied.

    A past that cannot be read is one line that says so: the job can still be shown, run and settled.
    """
    try:
        return unpack_moves(job.past) or [Move(State.QUEUED, job.created_at, "enqueued")]
    except msgspec.MsgspecError as err:
        return [Move(State.QUEUED, job.created_at, f"the history before this cannot be read: {err}")]


def _in_order(lines: list[Move]) -> list[Move]:
    """No line is earlier than the one before it. Each step reads the clock when it begins: one that promotes a job may
    begin after, and end before, the one that claims it."""
    ordered = lines[:1]
    for line in lines[1:]:
        at = max(line.at, ordered[-1].at)
        ordered.append(line if at == line.at else line._replace(at=at))
    return ordered


def _open_lines(job: Job, before: State) -> Iterable[Move]:
    """The lines that the current attempt's fields stand for."""
    if job.queued_at is not None:
        yield Move(State.QUEUED, job.queued_at, "released" if before is State.HELD else "due")
    if job.started_at is not None:
        yield Move(State.RUNNING, job.started_at, "claimed", {"worker": job.holder, "lease": job.lease_no})
    if job.state.is_final and job.finished_at is not None:
        yield Move(job.state, job.finished_at, _final_reason(job), _final_data(job, job.finished_at))


def _final_reason(job: Job) -> str:
    match job.state:
        case State.SUCCEEDED:
            return f"returned; the cancel came too late ({job.cancel_reason})" if job.cancel_reason else "returned"
        case State.CANCELLED:
            return job.cancel_reason or "cancelled"
        case _:
            return (job.error or "failed").partition("\n")[0]


def _final_data(job: Job, finished_at: int) -> dict[str, Any]:
    data: dict[str, Any] = {"attempts": job.attempts}
    if job.started_at is not None:
        data["seconds"] = max(0, finished_at - job.started_at) / SECOND
    return data if job.error is None else {**data, "error": job.error}
