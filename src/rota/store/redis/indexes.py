"""The indexes that a job is in, and the commands that change them and its stored values. Pure.

Every index is a sorted set by position, so that lists need no scan: of a task, of a schedule, of each state of a queue.
Ready jobs are in one set per queue and priority, which keeps the order exact after every retry. Scheduled jobs are also
in a set by run_at, and ended ones in a set by finished_at, for the pruner. Jobs that a schedule created before they are
due are in sets of their own by run_at, as their schedule's policy decides on them first, and apart from its live jobs,
as they may be many that no firing reads. Running jobs are in no set: they are few, and the hash of their leases is
scanned only when a holder is late. Jobs with more than one attempt are in a set by position and in one by the number of
their attempts. So most jobs are in two to seven sets, of about a hundred bytes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.jobs.job import State
from rota.model.jobs.series import NAMES
from rota.model.schedules.lookahead import is_ahead
from rota.store.contract import FEWEST_REPEATED
from rota.store.redis.codec import Lease, binary, home_of, pack_record, standing_of, waiting_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rota.model.jobs.job import Job

Command = list[Any]
Held = tuple[str, str]  # what at most one job holds: "key" and a key, or "busy" and the schedule whose slot it is
Indexes = dict[str, int | None]  # key -> score: a time, or None for the position

HOUR = 3600 * 1_000_000


def indexes_of(job: Job) -> Indexes:
    """Every index that the job is in."""
    return _of_state(job) | _of_origin(job)


def _of_origin(job: Job) -> Indexes:
    """The indexes that it is in whatever its state; a schedule also has one of its live jobs."""
    indexes: Indexes = {f"task:{job.task}": None}
    if job.attempts >= FEWEST_REPEATED:
        indexes |= {"repeated": None, "attempts": job.attempts}
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
    commands = _moves(job_id, before, after, indexes_of)
    if after is None:
        return commands
    if after.state is State.QUEUED:
        commands.append(["ZADD", f"priorities:{after.queue}", after.priority, after.priority])
    if before is None:
        hour = after.created_at // HOUR
        commands.append(["ZADD", "tasks", 0, after.task])
        commands.append(["ZADD", "hours:first", "LT", after.seq, hour])
        commands.append(["ZADD", "hours:last", "GT", after.seq, hour])
    return commands


def settle_commands(job: Job, after: Job | None) -> list[Command]:
    """The commands that settle a running job, but for its state, which is settled for many jobs at once."""
    return free_commands(job.id, job, after) + _moves(job.id, job, after, _of_origin)


def _moves(job_id: str, before: Job | None, after: Job | None, indexes_of: Callable[[Job], Indexes]) -> list[Command]:
    old = indexes_of(before) if before is not None else {}
    new = indexes_of(after) if after is not None else {}
    seq = after.seq if after is not None else 0
    added = [["ZADD", key, seq if at is None else at, job_id] for key, at in new.items() if old.get(key, "") != at]
    return [["ZREM", key, job_id] for key in old if key not in new] + added


def runs_of(numbers: Iterable[int]) -> list[str | int]:
    """The numbers of settled runs that are not 0, each behind the name under which its minute stores it."""
    named = zip(NAMES, numbers, strict=False)
    return [part for name, number in named if number for part in (name, number)]


def job_commands(job_id: str, before: Job | None, after: Job | None) -> Iterator[Command]:
    """The commands that bring a job to its new values, indexes and lease, and tell those who wait for jobs."""
    yield from index_commands(job_id, before, after)
    yield from _value_commands(job_id, before, after)
    was_running, is_running = (job is not None and job.state is State.RUNNING for job in (before, after))
    if before is not None and was_running and not is_running:
        yield ["UNLEASE", before.holder or "", 1]
    if after is not None and is_running and not was_running:
        yield ["LEASE", after.holder or "", 1, after.lease_until or 0]
    if after is not None and after.state in {State.QUEUED, State.SCHEDULED}:
        yield ["NOTIFY", "jobs"]


def _value_commands(job_id: str, before: Job | None, after: Job | None) -> Iterator[Command]:
    """The commands that change the stored values of a job."""
    if after is None:
        for name in ("job", "state", "end", "ready_at", "lease", "cancel", "progress"):
            yield ["HDEL", name, job_id]
        yield ["UNLINK", f"log:{job_id}"]
        return
    if before is None:
        yield from _new_commands(after)
        return
    if after.state is State.RUNNING:  # asked to stop: its lease and its other fields stay
        if after.cancel_reason and after.cancel_reason != before.cancel_reason:
            yield ["HSET", "cancel", job_id, after.cancel_reason]
        return
    if before.state.is_final is not after.state.is_final:
        yield ["HDEL", home_of(before.state), job_id]
    yield _standing_command(after)
    for name in ("ready_at", "lease", "cancel"):
        yield ["HDEL", name, job_id]


def held_by(job: Job | None) -> list[Held]:
    """The key and the slot that a job holds."""
    if job is None:
        return []
    named: tuple[tuple[str, str | None], ...] = (("key", job.key), ("busy", job.slot))
    return [(home, name) for home, name in named if name is not None]


def free_commands(job_id: str, before: Job | None, after: Job | None) -> list[Command]:
    """The commands that free what a job holds no more."""
    return [["FREE", *held, job_id] for held in held_by(before) if held not in held_by(after)]


def _standing_command(job: Job) -> Command:
    return ["HSET", home_of(job.state), job.id, binary(standing_of(job))]


def _new_commands(job: Job) -> Iterator[Command]:
    """The values of a new job. One of another store may have a past; a running one has its lease, which has expired."""
    waiting = msgspec.structs.replace(job, progress=None)
    if job.state is State.RUNNING:
        lease = Lease(job.started_at or 0, job.lease_until or 0, job.lease_no, job.holder or "")
        yield ["HSET", "lease", job.id, lease.packed()]
        if job.cancel_reason:
            yield ["HSET", "cancel", job.id, job.cancel_reason]
        of_lease = {"lease_no": job.lease_no - 1, "holder": None, "started_at": None, "lease_until": None}
        waiting = msgspec.structs.replace(waiting, state=State.QUEUED, cancel_reason=None, **of_lease)
    if job.progress is not None:
        yield ["HSET", "progress", job.id, job.progress]
    record = b"%d" % job.seq + pack_record(waiting)
    yield ["HSET", "job", job.id, binary(record)]
    if waiting_job(job.id, record, None) != waiting:
        yield _standing_command(waiting)
