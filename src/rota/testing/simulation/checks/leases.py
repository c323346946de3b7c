"""Checks that a job has one lease at a time, and that only its holder writes about it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.testing.simulation.history import Call, History, World

ONE_LEASE = "I3: lease intervals of one job never overlap"
NO_STALE_WRITE = "I4: no stale write is accepted"


def check_leases(history: History) -> list[Violation]:
    """A job is claimed only after its last lease has ended: it was settled, or rescued after the lease expired."""
    return [violation for call, world in history.replay() for violation in _lease_faults(call, world)]


def check_stale_writes(history: History) -> list[Violation]:
    """Every accepted write found what it was decided on unchanged."""
    return [violation for call, world in history.replay() for violation in _stale_writes(call, world)]


def count_refused(history: History) -> int:
    """How many writes by workers came too late and were refused."""
    return sum(len(call.reply.refused) for call in history.calls if call.verb == "exchange")


def accepted(call: Call) -> list[Change]:
    """The changes of jobs that a call contained and the store accepted."""
    match call.verb:
        case "exchange":
            return _settled(call.args[0].settled, Counter(refusal.id for refusal in call.reply.refused))
        case "rescue_jobs" | "change_jobs":
            refused = {refusal.id for refusal in call.reply}
            return [change for change in call.args[0] if change.id not in refused]
        case _:
            return []


def _settled(changes: list[Change], refused: Counter[str]) -> list[Change]:
    """A batch may contain two changes of one job, under an old lease and a new one: the old one is refused first."""
    if not refused:
        return changes
    oldest_first = sorted(changes, key=lambda change: change.job.lease_no)
    taken: list[Change] = []
    for change in oldest_first:
        if refused[change.id]:
            refused[change.id] -= 1
        else:
            taken.append(change)
    return taken


def _lease_faults(call: Call, world: World) -> Iterator[Violation]:
    ended = {change.id for change in accepted(call)}
    for before, after in call.jobs:
        if before is None or after is None:
            continue
        begins = call.verb == "exchange" and after.state is State.RUNNING
        if after.lease_no == before.lease_no and not begins:
            continue
        if before.state is State.RUNNING and before.id not in ended:
            yield Violation(ONE_LEASE, call.step, f"{_lease(after)} began while {_lease(before)} had not ended")
        if after.lease_no != before.lease_no + 1:
            yield Violation(ONE_LEASE, call.step, f"{_lease(after)} follows {_lease(before)}")
    for change in accepted(call):
        job = world.jobs.get(change.id)
        if call.verb == "rescue_jobs" and job is not None and (job.lease_until or 0) > call.at:
            yield Violation(ONE_LEASE, call.step, f"{_lease(job)} was rescued before it had expired")


def _stale_writes(call: Call, world: World) -> Iterator[Violation]:
    for change in accepted(call):
        job = world.jobs.get(change.id)
        if job is None or (job.state, job.lease_no) != (change.job.state, change.job.lease_no):
            yield Violation(NO_STALE_WRITE, call.step, f"{call.actor} {call.verb}: decided on {change.job}, met {job}")
        elif call.verb == "exchange" and job.holder != call.args[0].holder:
            yield Violation(NO_STALE_WRITE, call.step, f"{call.args[0].holder} settled a job of {job.holder}")
    if call.verb == "extend_leases":
        yield from _stale_extensions(call, world)
    if call.verb == "fire":
        yield from _stale_firings(call, world)
    if call.verb == "edit_schedules":
        yield from _stale_edits(call, world)


def _stale_extensions(call: Call, world: World) -> Iterator[Violation]:
    holder, leases, _ = call.args
    asked = {job_id for job_id, _ in leases}
    for _, after in call.jobs:
        if after is not None and after.id not in asked:
            yield Violation(NO_STALE_WRITE, call.step, f"{holder} renewed {_lease(after)} without asking for it")
    for job_id, lease_no in leases:
        job = world.jobs.get(job_id)
        is_held = job is not None and job.state is State.RUNNING and (job.holder, job.lease_no) == (holder, lease_no)
        if is_held == (job_id in call.reply.lost):
            yield Violation(NO_STALE_WRITE, call.step, f"{holder} renewed lease {lease_no} of {job_id}: met {job}")


def _stale_firings(call: Call, world: World) -> Iterator[Violation]:
    for firing, fired in zip(call.args[0], call.reply, strict=True):
        schedule = world.schedules.get(fired.schedule_id)
        is_current = schedule is not None and schedule.version == firing.schedule.version
        if fired.is_accepted and not is_current:
            yield Violation(NO_STALE_WRITE, call.step, f"fired {fired.schedule_id} on a version that had moved on")


def _stale_edits(call: Call, world: World) -> Iterator[Violation]:
    for edit in call.args[0]:
        schedule = world.schedules.get(edit.id)
        is_current = (schedule.version if schedule else 0) == edit.expect_version
        if not is_current and edit.id not in call.reply:
            yield Violation(NO_STALE_WRITE, call.step, f"edited {edit.id} on a version that had moved on")


def _lease(job: Job) -> str:
    return f"lease {job.lease_no} of {job.id} ({job.state}, held by {job.holder})"
