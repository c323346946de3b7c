"""Places: in which indexes a job stands, and what must be written when it changes. Pure.

Every index is a sorted set by place in line, so that lists need no scan: of a task, of a schedule, of each state of a
queue. What is ready stands in one set per queue and priority, which keeps the order exact after every retry. What waits
for its time also stands by run_at, and what has ended by finished_at, for the pruner. What was made ahead of its time
stands in sets of its own by run_at, as it is judged before it is ready, and apart from its schedule's live jobs, as it
may be many that no firing needs to see. Running jobs stand in no set: they are few, and their leases are a hash that is
looked through only where a holder is late. So a job is in two to seven sets, of about a hundred bytes each. Plain jobs
that succeeded together stand in their two sets as one sheaf instead: a job that goes may be left in its sheaf for a
while, and whoever opens that looks whether the job is still there. So stand jobs that were added together in their
task's set; how many of them are left is counted, and with the last of them their sheaf goes. While they are ready they
stand in line in sheaves, too, which are exact: one is spread out where a job goes from its middle, or comes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.model.lookahead import is_ahead
from rota.model.state import State

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.store.shared.counting import Counts

Command = list[Any]
Places = dict[str, int]  # key -> score

HOUR = 3600 * 1_000_000


def places_of(job: Job) -> Places:
    """Every set that the job is in, with its score."""
    return fixed_places(job) | passing_places(job)


def fixed_places(job: Job) -> Places:
    """Those that it is in as long as it is kept."""
    places = {f"task:{job.task}": job.seq}
    if job.schedule_id is not None:
        places[f"made:{job.schedule_id}"] = job.seq
        if job.fire_at is not None:
            places[f"slot:{job.schedule_id}"] = job.fire_at
    return places


def passing_places(job: Job) -> Places:
    """Those that its state puts it in."""
    places = _state_places(job)
    if job.schedule_id is not None and job.is_live:
        places[f"{'soon' if is_ahead(job) else 'live'}:{job.schedule_id}"] = job.seq
    return places


def _state_places(job: Job) -> Places:
    index = f"in:{job.queue}:{job.state.value}"
    match job.state:
        case State.QUEUED:
            return {f"ready:{job.queue}:{job.priority}": job.seq}
        case State.RUNNING:
            return {}
        case State.SCHEDULED:
            if is_ahead(job):
                return {index: job.seq, "ahead": job.run_at, f"ahead:{job.queue}": job.run_at}
            return {index: job.seq, f"due:{job.queue}": job.run_at}
        case State.HELD:
            return {index: job.seq, "held": job.seq, f"waits:{job.waits_for}": job.seq}
        case _:
            return {index: job.seq, f"ended:{job.state.value}": job.finished_at or 0}


def moves(before: Job | None, after: Job | None) -> list[Command]:
    """The commands that take a job from where it stood to where it stands; what goes leaves its task by `departure`."""
    old = places_of(before) if before is not None else {}
    new = places_of(after) if after is not None else {}
    job_id = after.id if after is not None else before.id if before is not None else ""
    if before is not None and after is None:
        del old[f"task:{before.task}"]
    commands: list[Command] = [["ZREM", key, job_id] for key in old if key not in new]
    commands += [["ZADD", key, score, job_id] for key, score in new.items() if old.get(key) != score]
    if after is not None and after.state is State.QUEUED:
        commands.append(["ZADD", f"priorities:{after.queue}", after.priority, after.priority])
    if before is None and after is not None:
        commands += beginnings(after)
    return commands


def departure(job: Job) -> tuple[str, str, int]:
    """What is told of a job that goes, so that it leaves its task's index, where it may stand in a sheaf."""
    return job.task, job.id, job.seq


def beginnings(job: Job) -> list[Command]:
    """What a new job adds to the lists of tasks and of hours."""
    hour = job.created_at // HOUR
    return [
        ["ZADD", "tasks", 0, job.task],
        ["ZADD", "hours:first", "LT", job.seq, hour],
        ["ZADD", "hours:last", "GT", job.seq, hour],
    ]


def count(counts: Counts, before: Job | None, after: Job | None) -> None:
    """Count a move. A total rises when a job ends, and when one that had ended does so again."""
    if before is None and after is not None:
        counts.add(after.queue, after.state)
    elif after is None and before is not None:
        counts.remove(before.queue, before.state)
    elif before is not None and after is not None and before.state is not after.state:
        counts.move(after.queue, before.state, after.state)


def count_commands(counts: Counts) -> list[Command]:
    return [["HINCRBY", "count", f"{queue}|{name}", number] for queue, name, number in counts.rows()]
