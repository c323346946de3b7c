"""Facts: jobs, their history, nodes, changes and answers to why, as JSON shows them everywhere; times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from rota.model.history import history_of
from rota.model.micros import datetime_of, optional_datetime, outside_calendar
from rota.model.state import State
from rota.model.wording import plain_form
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from rota.inspector.changes import Change
    from rota.model.job import Job
    from rota.model.occurrence import Occurrence
    from rota.model.redaction import Redaction
    from rota.model.why import Verdict
    from rota.model.why_job import JobVerdict
    from rota.store.contract import Node

Facts = TypeVar("Facts", bound=Struct)


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
    problem: str | None  # why some of it cannot be read, if it cannot


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


def job_facts(job: Job, redaction: Redaction) -> JobFacts:
    made = redaction.call(job.payload)
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
        result=redaction.result(job.result, job.payload),
        problem=job_problem(job) or None,
    )


def job_problem(job: Job) -> str:
    """Why a job cannot be shown as it is stored; empty where it can."""
    instants = {name: getattr(job, name) for name in _INSTANTS}
    return outside_calendar(**instants) or _result_problem(job)


_INSTANTS = ("created_at", "run_at", "queued_at", "started_at", "finished_at", "fire_at")


def _result_problem(job: Job) -> str:
    """Why what it returned cannot be read."""
    try:
        msgspec.json.decode(job.result or b"null")
    except msgspec.MsgspecError as err:
        return f"cannot be read: its result is not JSON ({err})"
    return ""


def move_facts(job: Job) -> list[MoveFacts]:
    """A job's history, oldest first."""
    return [
        MoveFacts(state=move.state, at=datetime_of(move.at), reason=move.reason, data=move.data)
        for move in history_of(job)
    ]


def utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)


class NodeFacts(Struct, kw_only=True):
    """A process that works on jobs or fires schedules."""

    id: str
    state: Literal["alive", "silent"]
    host: str
    pid: int
    roles: list[str]
    queues: list[str]
    tasks: list[str]
    running: int
    concurrency: int
    app: str
    version: str
    started_at: datetime
    beat_at: datetime
    problem: str | None  # why its record cannot be read, if it cannot


def node_facts(node: Node, now: int) -> NodeFacts:
    said = {name: getattr(node, name) for name in ("id", "host", "pid", "running", "concurrency", "app", "version")}
    return NodeFacts(
        **said,
        state="alive" if is_alive(node, now) else "silent",
        roles=list(node.roles),
        queues=list(node.queues),
        tasks=list(node.tasks),
        started_at=datetime_of(node.started_at),
        beat_at=datetime_of(node.beat_at),
        problem=node_problem(node) or None,
    )


def node_problem(node: Node) -> str:
    return node.problem or outside_calendar(started_at=node.started_at, beat_at=node.beat_at)


class WhyFacts(Struct, kw_only=True):
    """Why a schedule did or did not run at an instant, and the expected times next to it."""

    schedule_id: str
    at: datetime
    outcome: str
    sentence: str
    fix: str
    job_id: str | None
    before: datetime | None
    after: datetime | None


def why_facts(verdict: Verdict) -> WhyFacts:
    return WhyFacts(
        schedule_id=verdict.schedule_id,
        at=datetime_of(verdict.at),
        outcome=verdict.outcome,
        sentence=verdict.sentence,
        fix=verdict.fix,
        job_id=verdict.job_id,
        before=optional_datetime(verdict.before),
        after=optional_datetime(verdict.after),
    )


class JobWhyFacts(Struct, kw_only=True):
    """Where a job is, what it waits for, and what to do."""

    job_id: str
    state: State
    outcome: str
    sentence: str
    fix: str
    waits_for: str | None  # the job that must end first
    due_at: datetime | None  # when it may run, where that is still to come


def job_why_facts(verdict: JobVerdict) -> JobWhyFacts:
    return filled(JobWhyFacts, verdict, due_at=optional_datetime(verdict.due_at))


class OccurrenceFacts(Struct, kw_only=True):
    """The expected times in after < t <= through, and their one outcome."""

    after: datetime
    through: datetime
    count: int
    outcome: str
    reason: str
    job_id: str | None
    problem: str | None  # why it cannot be read, if it cannot


def occurrence_facts(line: Occurrence) -> OccurrenceFacts:
    return OccurrenceFacts(
        after=datetime_of(line.after_at),
        through=datetime_of(line.through_at),
        count=line.count,
        outcome=line.outcome,
        reason=line.reason,
        job_id=line.job_id,
        problem=outside_calendar(after=line.after_at, through=line.through_at) or None,
    )


class ChangeFacts(Struct, kw_only=True):
    """One change of one thing: who, what, before and after."""

    id: str
    at: datetime
    by: str
    verb: str
    kind: str
    name: str
    before: dict[str, Any]  # only what differs; instants are ISO text, spans are text such as 1h30m
    after: dict[str, Any]


def change_facts(change: Change) -> ChangeFacts:
    return filled(ChangeFacts, change, **change_forms(change))


def change_forms(change: Change) -> dict[str, Any]:
    """What differs, as programs read it; one form for the command line, HTTP and the event stream."""
    return {"before": plain_form(change.before), "after": plain_form(change.after)}


def filled(kind: type[Facts], thing: object, **own: Any) -> Facts:
    """Facts that say of a thing what it says itself by the same names, and the rest as given."""
    return kind(**{name: getattr(thing, name) for name in kind.__struct_fields__ if name not in own}, **own)
