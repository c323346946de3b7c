"""Checks which of the times that came due make jobs, by an oracle that counts them one by one.

It decides simple cases only. A schedule with a bound on its runs, or with more due times than one firing takes, is left
to the checks of the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import holds_key
from rota.testing.simulation.checks.occurrences import expected_slots
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.schedules.firing import Firing
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Fired
    from rota.testing.simulation.history import Call, History, World

BY_POLICY = "I2: catch-up and overlap choose what their policies say"
MOST = 100  # times that one firing takes


def check_policies(history: History) -> list[Violation]:
    """Each accepted firing made the jobs that its schedule's catch-up and overlap ask for."""
    violations: list[Violation] = []
    decided_at: dict[str, int] = {}
    for call, world in history.replay():
        if call.verb == "due_schedules":
            decided_at[call.actor] = call.reply.now
        elif call.verb == "fire":
            for firing, fired in zip(call.args[0], call.reply, strict=True):
                if fired.is_accepted:
                    violations += _wrong_choices(call, firing, decided_at[call.actor])
                    violations += _wrong_skips(call, world, firing, fired)
    return violations


def chosen_slots(schedule: Schedule, now: int) -> list[int] | None:
    """The times that make jobs, oldest first; None if the case is not a simple one."""
    spec = schedule.spec
    if spec.max_runs is not None:
        return None
    due = expected_slots(schedule, schedule.fired_through, now)
    if schedule.pause is not None or schedule.tenant_pause is not None:
        return []
    missed = [at for at in due if at < now - spec.grace]
    on_time = due[len(missed) :]
    if len(due) > MOST:
        return None
    match spec.catchup:
        case "skip":
            return on_time
        case "latest":
            return on_time or missed[-1:]
        case "all":
            return missed[-spec.catchup_limit :] + on_time


def _wrong_choices(call: Call, firing: Firing, now: int) -> Iterator[Violation]:
    wanted = chosen_slots(firing.schedule, now)
    got = [shot.job.fire_at for shot in firing.shots]
    if wanted is not None and got != wanted:
        text = f"{firing.schedule.id} (catchup={firing.schedule.spec.catchup!r}) chose {got}, not {wanted}"
        yield Violation(BY_POLICY, call.step, text)


def _wrong_skips(call: Call, world: World, firing: Firing, fired: Fired) -> Iterator[Violation]:
    """Only a live occurrence keeps another from being made, and where overlap is allowed, not even that; or a job that
    holds its key."""
    made, name = len(fired.jobs), firing.schedule.id
    if fired.unique and not _is_held(call, world, firing.schedule.spec.key):
        yield Violation(
            BY_POLICY, call.step, f"{name} was refused by the key {firing.schedule.spec.key!r}, which is free"
        )
    left_out = len(firing.shots) - made - fired.unique
    if not left_out:
        return
    is_busy = any(job.schedule_id == name and job.fire_at and job.is_live for job in world.jobs.values())
    if firing.schedule.spec.overlap == "allow" or (made == 0 and not is_busy):
        yield Violation(BY_POLICY, call.step, f"{name} left out {left_out} of {len(firing.shots)} for no reason")


def _is_held(call: Call, world: World, key: str) -> bool:
    """Whether a job has a key before a call, or gets it in the call."""
    known = [*world.jobs.values(), *(after for _, after in call.jobs if after is not None)]
    return any(job.key == key and holds_key(job.state, job.key_until, call.at) for job in known)
