"""Describes one sync of a collection, started by its schedule or by hand in the same slot."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rota.model.collection import MANUAL
from rota.model.jobs.job import NewJob, State
from rota.model.reasons import reason_text

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Schedule


class Status(StrEnum):
    """The status of a task, in the words of its HTTP contract."""

    SCHEDULED = "SCHEDULED"  # waits, for its turn or for its next attempt
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    SUCCESS = "SUCCESS"


STATES: dict[Status, tuple[State, ...]] = {
    Status.SCHEDULED: (State.SCHEDULED, State.QUEUED, State.HELD),
    Status.RUNNING: (State.RUNNING,),
    Status.FAILED: (State.FAILED, State.CANCELLED),
    Status.SUCCESS: (State.SUCCEEDED,),
}
_STATUSES = {state: status for status, states in STATES.items() for state in states}


def status_of(job: Job) -> Status:
    return _STATUSES[job.state]


def level_of(job: Job) -> int:
    """The priority that its collection has, however it was started."""
    return job.priority - MANUAL if job.made_by == "manual" else job.priority


def start_sync(schedule: Schedule, fresh: str, by: str) -> NewJob:
    """A task started by hand. It takes the slot of the schedule's tasks, so that only one of them is live."""
    spec = schedule.spec
    return NewJob(
        id=spec.sync.task_id(fresh) if spec.sync else fresh,
        task=spec.task,
        payload=spec.payload.encode(),
        queue=spec.queue,
        priority=spec.priority + MANUAL,
        key=spec.key or None,
        key_for=spec.key_for,
        slot=schedule.id,
        schedule_id=schedule.id,
        generation=schedule.generation,
        made_by="manual",
        reason=reason_text("started_by", by=by) if by else reason_text("started"),
    )
