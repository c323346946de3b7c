"""What is answered: jobs, schedules, tenants and the rest as JSON shows them; times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadPayload
from rota.model.micros import datetime_of, optional_datetime
from rota.model.payload import Call, unpack_call
from rota.model.state import State

if TYPE_CHECKING:
    from rota.changes import Change
    from rota.model.job import Job


class JobFacts(Struct, kw_only=True):
    """A job."""

    id: str
    task: str
    state: State
    queue: str
    priority: int
    args: list[Any]
    kwargs: dict[str, Any]
    key: str | None
    schedule_id: str | None
    occurrence: datetime | None  # the nominal time that it stands for, where a schedule made it
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    worker: str | None
    progress: str | None
    error: str | None
    result: Any


class MoveFacts(Struct, kw_only=True):
    """One line of a job's history."""

    state: State
    at: datetime
    reason: str
    data: dict[str, Any] | None


class LineFacts(Struct, kw_only=True):
    """One line that a job wrote."""

    number: int
    at: datetime
    level: str
    text: str


def job_facts(job: Job) -> JobFacts:
    made = call_of(job.payload)
    return JobFacts(
        id=job.id,
        task=job.task,
        state=job.state,
        queue=job.queue,
        priority=job.priority,
        args=made.args,
        kwargs=made.kwargs,
        key=job.key,
        schedule_id=job.schedule_id,
        occurrence=optional_datetime(job.fire_at),
        created_at=datetime_of(job.created_at),
        run_at=datetime_of(job.run_at),
        started_at=optional_datetime(job.started_at),
        finished_at=optional_datetime(job.finished_at),
        attempts=job.attempts,
        worker=job.holder,
        progress=job.progress,
        error=job.error,
        result=msgspec.Raw(job.result) if job.result else None,
    )


def call_of(payload: bytes) -> Call:
    """A job's arguments; none where they cannot be read."""
    try:
        return unpack_call(payload)
    except BadPayload:
        return Call()


def utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


class ChangeFacts(Struct, kw_only=True):
    """One change of one thing: who, what, before and after."""

    id: str
    at: datetime
    by: str
    verb: str
    kind: str
    name: str
    before: dict[str, Any]  # only what differs
    after: dict[str, Any]


def change_facts(change: Change) -> ChangeFacts:
    return ChangeFacts(**{name: getattr(change, name) for name in ChangeFacts.__struct_fields__})
