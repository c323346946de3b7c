"""Shows a job's life as stages: each wait with its cause, each attempt with its outcome."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from rota.model.jobs.job import State, history_of
from rota.model.micros import datetime_of
from rota.model.reasons import LAST_DEATHS, read_reason
from rota.sentences import Sentence

if TYPE_CHECKING:
    from rota.model.jobs.job import Job, Move

Cause = Literal["queue", "held", "delay", "retry", "snooze", "unknown", "released", "lost", "returned"]
Ending = Literal["running", "succeeded", "failed", "cancelled", "lost", "returned", "snoozed", "unknown"]
UNSPENT = frozenset({"lost", "returned", "unknown"})  # endings that `Job.attempts` does not count


class Stage(Struct, frozen=True, kw_only=True):
    """One stage: a wait (with a cause), an attempt (with an ending), or the end (with neither)."""

    state: State
    start: datetime
    end: datetime
    reason: str
    cause: Cause | None = None
    ending: Ending | None = None
    attempt: int = 0  # as the task, the events and `why` number it; an attempt that is not counted has no number
    is_again: bool = False  # the same attempt, after its worker was lost or returned it
    is_by_hand: bool = False  # a wait that began with a retry by hand
    worker: str | None = None
    error: str | None = None  # with which the attempt ended
    is_process_death: bool = False  # the child process died that ran the attempt, not its worker
    waits_for: str | None = None
    is_last: bool = False

    @property
    def seconds(self) -> float:
        return max(0.0, (self.end - self.start).total_seconds())


def life_of(job: Job, now: int) -> list[Stage]:
    """Every stage, oldest first; the last one lasts until now, unless the job has ended."""
    moves = history_of(job)
    stages: list[Stage] = []
    spent, is_again, before = 0, False, None
    for move, after in zip(moves, [*moves[1:], None], strict=True):
        stage = _stage(move, after, now)
        if stage.ending is not None:
            stage = structs.replace(stage, attempt=spent + 1, is_again=is_again)
            is_again = stage.ending in UNSPENT
            spent += not is_again
        elif before is not None and before.is_final:
            stage = structs.replace(stage, is_by_hand=True)
        stages.append(stage)
        before = move.state
    return stages


def _stage(move: Move, after: Move | None, now: int) -> Stage:
    data = move.data or {}
    is_end = move.state.is_final and after is None
    return Stage(
        state=move.state,
        start=datetime_of(move.at),
        end=datetime_of(after.at if after else move.at if is_end else max(now, move.at)),
        reason=move.reason,
        cause=_cause(move) if move.state.is_waiting else None,
        ending=_ending(after) if move.state is State.RUNNING else None,
        worker=data.get("worker"),
        error=_error(after) if move.state is State.RUNNING else None,
        is_process_death=move.state is State.RUNNING and after is not None and _is_process_death(after),
        waits_for=data.get("waits_for"),
        is_last=after is None,
    )


def _cause(move: Move) -> Cause:
    if move.state is State.HELD:
        return "held"
    if move.state is State.QUEUED:
        return "lost" if _is_death(move) else "returned" if move.reason.startswith("returned") else "queue"
    known: dict[str, Cause] = {
        "retry": "retry", "snooze": "snooze", "unknown task": "unknown", "released": "released"
    }  # fmt: skip
    return known.get((move.data or {}).get("cause", ""), "delay")


def _ending(after: Move | None) -> Ending:
    if after is None:
        return "running"
    match after.state:
        case State.SUCCEEDED:
            return "succeeded"
        case State.CANCELLED:
            return "cancelled"
        case State.FAILED:
            return "lost" if after.reason.startswith(LAST_DEATHS) else "failed"
        case State.QUEUED:
            return "lost" if _is_death(after) else "returned"
        case _:
            cause = _cause(after)
            return "snoozed" if cause == "snooze" else "unknown" if cause == "unknown" else "failed"


def _is_death(move: Move) -> bool:
    return move.reason.startswith(("worker lost", "process died"))


def _is_process_death(move: Move) -> bool:
    if move.state is State.QUEUED:
        return move.reason.startswith("process died")
    found = read_reason(move.reason)
    return isinstance(found, Sentence) and found.code in {"reason.last_process", "reason.parked_process"}


def _error(after: Move | None) -> str | None:
    if after is None:
        return None
    found = (after.data or {}).get("error")
    return str(found) if found else after.reason if _is_death(after) else None
