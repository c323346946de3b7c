"""Defines jobs, their history and their log lines, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from rota.errors import BadPayload
from rota.inspector.facts.values import filled
from rota.model.jobs.job import NewJob, State, accept, history_of, ready_at
from rota.model.jobs.payload import unpack_call
from rota.model.micros import datetime_of, optional_datetime, outside_calendar

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store
    from rota.tasks.task import Request


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
    occurrence: datetime | None  # the nominal time of the occurrence, if a schedule made the job
    created_at: datetime
    run_at: datetime
    ready_at: datetime | None  # when it became ready to be claimed; null while it is scheduled or held
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    worker: str | None
    progress: str | None
    error: str | None
    result: Any
    problem: str | None  # why a part of it cannot be read, if it cannot


class EnqueuedFacts(JobFacts, kw_only=True):
    """The job of a request."""

    existed: bool  # no job was made: this one holds the unique key already, or syncs the same collection


class MoveFacts(Struct, kw_only=True):
    """One entry of a job's history."""

    state: State
    at: datetime
    reason: str
    data: dict[str, Any] | None


class JobPageFacts(JobFacts, kw_only=True):
    """A job with its history, oldest entry first."""

    history: list[MoveFacts]


class LineFacts(Struct, kw_only=True):
    """One line that a job wrote."""

    number: int
    at: datetime
    level: str
    text: str


class LogLine(Protocol):
    """A log line as a caller of `app.jobs.logs` gets it."""

    @property
    def number(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def level(self) -> str: ...
    @property
    def text(self) -> str: ...


def job_facts(job: Job, redaction: Redaction) -> JobFacts:
    return JobFacts(**_fields(job, redaction))


def enqueued_facts(job: Job, redaction: Redaction, *, existed: bool) -> EnqueuedFacts:
    return EnqueuedFacts(**_fields(job, redaction), existed=existed)


def enqueued_record(store: Store, request: Request, job_id: str) -> Job:
    """The job that a request made, as it is now. Only a job that succeeded and is not kept can be removed already."""
    found = store.get_jobs([job_id])
    if found:
        return found[0]
    new = NewJob(id=job_id, task=request.task, payload=request.payload, queue=request.queue, priority=request.priority)
    return msgspec.structs.replace(accept(new, store.now()), state=State.SUCCEEDED)


def job_page_facts(job: Job, redaction: Redaction) -> JobPageFacts:
    return JobPageFacts(**_fields(job, redaction), history=move_facts(job))


def line_facts(line: LogLine) -> LineFacts:
    return filled(LineFacts, line)


def _fields(job: Job, redaction: Redaction) -> dict[str, Any]:
    made = redaction.call(job.payload)
    same = ("id", "task", "state", "queue", "priority", "key", "schedule_id", "attempts", "progress", "error")
    return {
        **{name: getattr(job, name) for name in same},
        "args": made.args,
        "kwargs": made.kwargs,
        "occurrence": optional_datetime(job.fire_at),
        "created_at": datetime_of(job.created_at),
        "run_at": datetime_of(job.run_at),
        "ready_at": optional_datetime(ready_at(job)),
        "started_at": optional_datetime(job.started_at),
        "finished_at": optional_datetime(job.finished_at),
        "worker": job.holder,
        "result": redaction.result(job.result, job.payload),
        "problem": job_problem(job) or None,
    }


def job_problem(job: Job) -> str:
    """Why a job cannot be shown as it is stored; empty if it can."""
    instants = {name: getattr(job, name) for name in _INSTANTS}
    return outside_calendar(**instants) or _payload_problem(job) or _result_problem(job)


_INSTANTS = ("created_at", "run_at", "queued_at", "started_at", "finished_at", "fire_at")


def _payload_problem(job: Job) -> str:
    try:
        unpack_call(job.payload)
    except BadPayload as err:
        return f"cannot be run: {err}"
    return ""


def _result_problem(job: Job) -> str:
    try:
        msgspec.json.decode(job.result or b"null")
    except msgspec.MsgspecError as err:
        return f"cannot be read: its result is not JSON ({err})"
    return ""


def move_facts(job: Job) -> list[MoveFacts]:
    """A job's history, oldest entry first."""
    return [
        MoveFacts(state=move.state, at=datetime_of(move.at), reason=move.reason, data=move.data)
        for move in history_of(job)
    ]
