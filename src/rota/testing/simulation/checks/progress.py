"""Checks that no live job is stuck: it is due, ready, held behind a live job, or under a lease that can expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.jobs.job import Job
    from rota.testing.simulation.history import Call, History

NOT_STUCK = "I7: nothing is stuck"
NEVER_FAILS = "I7: no service fails for good"
LONGEST_WAIT = 3_600 * SECOND  # of a job that is due later; the simulation makes none longer


def check_not_stuck(history: History, lease_for: int) -> list[Violation]:
    """After every call, each job that it changed can continue by itself, and so can each held job."""
    violations: list[Violation] = []
    held: dict[str, Job] = {}
    for call, world in history.replay():
        now: dict[str, Job] = {}
        for before, after in call.jobs:
            if before is not None:
                held.pop(before.id, None)
            if after is not None:
                now[after.id] = after
                if after.state is State.HELD:
                    held[after.id] = after
        violations += _dead_ends(call, now, lease_for)
        for job in held.values() if call.jobs else ():
            behind = now.get(job.waits_for or "") or world.jobs.get(job.waits_for or "")
            if behind is None or not behind.is_live or (_is_gone(call, behind)):
                violations.append(Violation(NOT_STUCK, call.step, f"{_brief(job)} waits for {behind}"))
    return violations


def _is_gone(call: Call, job: Job) -> bool:
    return any(before is not None and after is None and before.id == job.id for before, after in call.jobs)


def _dead_ends(call: Call, now: dict[str, Job], lease_for: int) -> Iterator[Violation]:
    for job in now.values():
        lease_ends = job.lease_until is not None and call.at < job.lease_until <= call.at + lease_for
        if job.state is State.RUNNING and call.verb in {"exchange", "extend_leases"} and not lease_ends:
            yield Violation(NOT_STUCK, call.step, f"{_brief(job)} runs under a lease until {job.lease_until}")
        if job.state is State.RUNNING and not job.holder:
            yield Violation(NOT_STUCK, call.step, f"{_brief(job)} runs, and no worker holds it")
        if job.state is not State.RUNNING and job.lease_until is not None:
            yield Violation(NOT_STUCK, call.step, f"{_brief(job)} has a lease, and does not run")
        if job.state is State.SCHEDULED and job.run_at > call.at + LONGEST_WAIT:
            yield Violation(NOT_STUCK, call.step, f"{_brief(job)} waits until {job.run_at}")


def _brief(job: Job) -> str:
    return f"job {job.id} ({job.task}, {job.state}, lease {job.lease_no})"
