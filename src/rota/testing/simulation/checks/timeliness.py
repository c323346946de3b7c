"""Checks that nothing is late after the faults and their consequences, and that no service polls without a pause."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.testing.simulation.checks.leases import accepted
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.jobs.job import Job
    from rota.testing.simulation.history import Call, Changed, History, World

IN_TIME = "I10: lateness is bounded"
NO_SPIN = "I10: no service polls without a pause while nothing happens"

LATEST_START = SECOND  # of a ready job: a notification wakes a worker at once, and the runs before it are short
LATEST_FIRING = SECOND // 10
SLACK = SECOND
MOST_IDLE_CALLS = 15  # of one service, in one second in which nothing happens


def check_lateness(history: History, fault_free_from: int, recovered_from: int, lease_for: int) -> list[Violation]:
    """Ready jobs start, due schedules fire and expired leases are noticed within their bounds."""
    violations: list[Violation] = []
    ready_at: dict[str, int] = {}
    for call, world in history.replay():
        if call.at >= recovered_from:
            violations += _late_starts(call, ready_at, recovered_from)
            violations += _late_firings(call, world, recovered_from)
        if call.at >= fault_free_from and call.verb == "rescue_jobs":
            violations += _late_rescues(call, fault_free_from, lease_for)
        for change in call.jobs:
            _note_ready(ready_at, change, call.at)
    return violations


def check_spin(history: History) -> list[Violation]:
    """No service calls more than a few times within a second, unless something changes meanwhile."""
    violations: list[Violation] = []
    idle: dict[str, deque[int]] = {}
    for pulse in history.pulses:
        if pulse.did_something:
            idle.clear()
            continue
        if "/" not in pulse.actor:
            continue  # a person, not a service
        times = idle.setdefault(pulse.actor, deque(maxlen=MOST_IDLE_CALLS + 1))
        times.append(pulse.at)
        if len(times) > MOST_IDLE_CALLS and pulse.at - times[0] < SECOND:
            text = f"{pulse.actor} called {len(times)} times within {(pulse.at - times[0]) / SECOND:.3f} s"
            violations.append(Violation(NO_SPIN, pulse.step, text))
            times.clear()
    return violations


def _note_ready(ready_at: dict[str, int], change: Changed[Job], now: int) -> None:
    job = change.after or change.before
    if job is None:
        return
    after = change.after
    if after is None or not after.state.is_waiting or after.state is State.HELD:
        ready_at.pop(job.id, None)
    elif after.state is State.SCHEDULED:
        ready_at[after.id] = after.run_at
    else:
        ready_at.setdefault(after.id, now)


def _late_starts(call: Call, ready_at: dict[str, int], recovered_from: int) -> Iterator[Violation]:
    if call.verb != "exchange":
        return
    for job in call.reply.claimed:
        late = call.at - max(ready_at.get(job.id, call.at), recovered_from)
        if late > LATEST_START:
            yield Violation(IN_TIME, call.step, f"job {job.id} of {job.queue} waited {late / SECOND:.3f} s")


def _late_firings(call: Call, world: World, recovered_from: int) -> Iterator[Violation]:
    if call.verb != "fire":
        return
    for fired in call.reply:
        due_at = world.schedules[fired.schedule_id].due_at if fired.is_accepted else None
        late = 0 if due_at is None else call.at - max(due_at, recovered_from)
        if late > LATEST_FIRING:
            yield Violation(IN_TIME, call.step, f"{fired.schedule_id} fired {late / SECOND:.3f} s late")


def _late_rescues(call: Call, fault_free_from: int, lease_for: int) -> Iterator[Violation]:
    for change in accepted(call):
        late = call.at - max(change.job.lease_until or 0, fault_free_from)
        if late > lease_for // 2 + SLACK:
            yield Violation(IN_TIME, call.step, f"job {change.id} was rescued {late / SECOND:.3f} s after its lease")
