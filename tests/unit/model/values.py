"""Jobs and schedules to decide about, with the least that a test must say."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from rota.model.jobs.job import Job, NewJob, State, accept
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import apply, cancel, claim, settle
from rota.model.micros import SECOND
from rota.model.schedules.schedule import Origin, Schedule, ScheduleSpec
from rota.model.schedules.slots import next_slot

NOON = 1_790_000_000 * SECOND  # an instant like any other
MINUTE = 60 * SECOND
HOUR = 3_600 * SECOND

_numbers = count(1)


def some_id() -> str:
    return f"job-{next(_numbers)}"


def a_request(**fields: Any) -> NewJob:
    return NewJob(**{"id": some_id(), "task": "mail.send", "payload": b"[]", **fields})


def a_job(state: State = State.RUNNING, **fields: Any) -> Job:
    """A job that came to its state in lawful steps; fields are set on top."""
    job = accept(a_request(), NOON - MINUTE, seq=next(_numbers))
    match state:
        case State.SCHEDULED:
            job = accept(a_request(delay=HOUR), NOON - MINUTE, seq=next(_numbers))
        case State.HELD:
            job = accept(a_request(waits_for="another"), NOON - MINUTE, seq=next(_numbers))
        case State.QUEUED:
            pass
        case State.CANCELLED:
            job = apply(cancel(job, NOON - 1, "not wanted"))
        case _:
            job = claim(job, "worker-1", NOON - 10 * SECOND, NOON + 20 * SECOND)
    if state is State.SUCCEEDED:
        job = apply(settle(job, Succeeded(b"1"), RetryPolicy(), NOON - 1, 0.0))
    if state is State.FAILED:
        job = apply(settle(job, Failed("Boom: it broke", may_retry=False), RetryPolicy(), NOON - 1, 0.0))
    assert job.state is state
    return msgspec.structs.replace(job, **fields)


def a_schedule(
    trigger: str = "every 10m",
    *,
    created_at: int = NOON,
    origin: Origin | None = None,
    run_count: int = 0,
    schedule_id: str = "nightly",
    **spec: Any,
) -> Schedule:
    """A schedule as it is right after its creation."""
    fresh = Schedule(
        id=schedule_id,
        spec=ScheduleSpec(**{"trigger": trigger, "task": "mail.send", **spec}),
        origin=origin or Origin("code", "shop"),
        created_at=created_at,
        updated_at=created_at,
        fired_through=created_at,
        run_count=run_count,
    )
    return msgspec.structs.replace(fresh, next_at=next_slot(fresh, created_at))
