"""The indexes that a job is in, and the commands that change them with it. Pure.

Every index is a sorted set by position, so that lists need no scan: of a task, of a schedule, of each state of a queue.
Ready jobs are in one set per queue and priority, which keeps the order exact after every retry. Scheduled jobs are also
in a set by run_at, and ended ones in a set by finished_at, for the pruner. Jobs that a schedule created before they are
due are in sets of their own by run_at, as their schedule's policy decides on them first, and apart from its live jobs,
as they may be many that no firing reads. Running jobs are in no set: they are few, and the hash of their leases is
scanned only when a holder is late. So a job is in two to seven sets, of about a hundred bytes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.lookahead import is_ahead
from rota.model.state import State

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.store.shared.counting import Counts

Command = list[Any]
Indexes = dict[str, int | None]  # key -> score: a time, or None for the position

HOUR = 3600 * 1_000_000


def indexes_of(job: Job) -> Indexes:
    """Every index that the job is in."""
    indexes = _of_state(job)
    indexes[f"task:{job.task}"] = None
    if job.schedule_id is not None:
        indexes[f"made:{job.schedule_id}"] = None
        if job.fire_at is not None:
            indexes[f"slot:{job.schedule_id}"] = job.fire_at
        if job.is_live:
            indexes[f"{'soon' if is_ahead(job) else 'live'}:{job.schedule_id}"] = None
    return indexes


def _of_state(job: Job) -> Indexes:
    index = f"in:{job.queue}:{job.state.value}"
    match job.state:
        case State.QUEUED:
            return {f"ready:{job.queue}:{job.priority}": None}
        case State.RUNNING:
            return {}
        case State.SCHEDULED if is_ahead(job):
            return {index: None, "ahead": job.run_at, f"ahead:{job.queue}": job.run_at}
        case State.SCHEDULED:
            return {index: None, f"due:{job.queue}": job.run_at}
        case State.HELD:
            return {index: None, "held": None, f"waits:{job.waits_for}": None}
        case _:
            return {index: None, f"ended:{job.state.value}": job.finished_at or 0}


def index_commands(job_id: str, before: Job | None, after: Job | None) -> list[Command]:
    """The commands that bring a job from its former indexes to its new ones."""
    old = indexes_of(before) if before is not None else {}
    new = indexes_of(after) if after is not None else {}
    commands: list[Command] = [["ZREM", key, job_id] for key in old if key not in new]
    if after is None:
        return commands
    for key, score in new.items():
        if key not in old or old[key] != score:
            commands.append(["ZADD", key, after.seq if score is None else score, job_id])
    if after.state is State.QUEUED:
        commands.append(["ZADD", f"priorities:{after.queue}", after.priority, after.priority])
    if before is None:
        hour = after.created_at // HOUR
        commands.append(["ZADD", "tasks", 0, after.task])
        commands.append(["ZADD", "hours:first", "LT", after.seq, hour])
        commands.append(["ZADD", "hours:last", "GT", after.seq, hour])
    return commands


def count(counts: Counts, before: Job | None, after: Job | None) -> None:
    """Count a move. A total rises when a job ends, and when one that had ended does so again."""
    if before is None and after is not None:
        counts.add(after.queue, after.state)
    elif after is None and before is not None:
        counts.remove(before.queue, before.state)
    elif before is not None and after is not None and before.state is not after.state:
        counts.move(after.queue, before.state, after.state)
