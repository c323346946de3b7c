"""Lists, shows, follows, enqueues, retries, cancels and deletes jobs over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.app import internals
from rota.errors import BadPayload
from rota.inspector.facts.job import (
    EnqueuedFacts,
    JobFacts,
    JobPageFacts,
    LineFacts,
    MoveFacts,
    enqueued_facts,
    enqueued_record,
    job_facts,
    job_page_facts,
    line_facts,
    move_facts,
)
from rota.inspector.facts.why import JobWhyFacts
from rota.model.jobs.job import State
from rota.model.micros import optional_instant
from rota.operations.run_copy import run_copy
from rota.store.contract import JobFilter, Page
from rota.web.refusals import at_fault
from rota.web.route import Answer, Ask, Follow, Route
from rota.web.types import (
    Arguments,
    Body,
    Delay,
    FineDuration,
    Instant,
    JobId,
    Key,
    Limit,
    Name,
    Named,
    NumbersQuery,
    Priority,
    Query,
    ReasonBody,
    ScheduleId,
)

LineNumber = Annotated[int, Meta(ge=0, le=2**53)]
TaskPattern = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9._:-]{0,127}[*]?\Z", description="a trailing * matches any ending")
]


class JobPath(Struct, frozen=True):
    """Which job."""

    job_id: JobId


class JobsQuery(NumbersQuery, frozen=True, kw_only=True):
    """Which jobs; what is not said does not matter."""

    state: tuple[State, ...] = ()
    queue: Name | None = None
    task: TaskPattern | None = None
    schedule_id: ScheduleId | None = None
    key: Key | None = None
    since: Instant | None = None  # created at or after
    until: Instant | None = None  # created before


class LogsQuery(Query, frozen=True, kw_only=True):
    """Which lines."""

    after: LineNumber = 0  # lines with a higher number
    start: Instant | None = None
    end: Instant | None = None
    limit: Limit = 200
    follow: bool = False  # as server-sent events, until the job has ended


class NewJobBody(Body, frozen=True, kw_only=True):
    """A call to be made."""

    task: Name  # one that the app has registered
    args: Arguments = []
    kwargs: Named = {}
    delay: Delay | None = None
    at: Instant | None = None
    priority: Priority | None = None
    queue: Name | None = None
    key: Key | None = None
    key_for: FineDuration | None = None
    retries: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    timeout: FineDuration | None = None
    meta: Named | None = None


class CopyBody(Body, frozen=True, kw_only=True):
    """The arguments of a copy; what is left out is the original's."""

    args: Arguments | None = None
    kwargs: Named | None = None


class History(Struct, kw_only=True):
    """All moves of a job, oldest first."""

    items: list[MoveFacts]


class Lines(Struct, kw_only=True):
    """Lines in order; the number of the last is where to go on after."""

    items: list[LineFacts]


def list_jobs(ask: Ask) -> Page[JobFacts]:
    query: JobsQuery = ask.query
    where = JobFilter(
        states=query.state,
        queue=query.queue,
        task=query.task or None,
        schedule_id=query.schedule_id,
        key=query.key,
        since=optional_instant("since", query.since),
        until=optional_instant("until", query.until),
    )
    page = ask.app.open().list_jobs(where, cursor=query.cursor, limit=query.limit)
    return Page([job_facts(job, internals(ask.app).redaction) for job in page.items], page.cursor)


def get_job(ask: Ask) -> JobPageFacts:
    return job_page_facts(ask.app.jobs.read(ask.path.job_id), internals(ask.app).redaction)


def get_history(ask: Ask) -> History:
    return History(items=move_facts(ask.app.jobs.read(ask.path.job_id)))


def get_job_why(ask: Ask) -> JobWhyFacts:
    return ask.app.jobs.why(ask.path.job_id)


def get_logs(ask: Ask) -> Lines | Follow:
    query: LogsQuery = ask.query
    ask.app.jobs.read(ask.path.job_id)
    if query.follow:
        return Follow(ask.path.job_id, query.after if ask.last_event is None else ask.last_event)
    lines = ask.app.jobs.logs(ask.path.job_id, start=query.start, end=query.end, after=query.after, limit=query.limit)
    return Lines(items=[line_facts(line) for line in lines])


def enqueue_job(ask: Ask) -> Answer:
    body: NewJobBody = ask.body
    with at_fault("task"):
        task = internals(ask.app).registry.get(body.task)
    options: dict[str, Any] = {
        name: getattr(body, name)
        for name in ("delay", "at", "priority", "queue", "key", "key_for", "retries", "timeout", "meta")
    }
    with at_fault("args", BadPayload):
        request = task.using(**options).job(*body.args, **body.kwargs)
    job = internals(ask.app).send([request])[0]
    if not job.existed:
        ask.app.jobs.note(job.id, "enqueued", ask.by, {}, {"task": task.name})
    record = job.record if job.existed else enqueued_record(ask.app.open(), request, job.id)
    facts = enqueued_facts(record, internals(ask.app).redaction, existed=job.existed)
    return Answer(facts, 200 if job.existed else 201)


def copy_job(ask: Ask) -> JobFacts:
    body: CopyBody = ask.body
    inner, original = internals(ask.app), ask.app.jobs.read(ask.path.job_id)
    copy = run_copy(
        ask.app.open(),
        inner.registry,
        inner.redaction,
        original,
        inner.new_id(),
        args=body.args,
        kwargs=body.kwargs,
        by=ask.by,
    )
    return job_facts(ask.app.jobs.read(copy), inner.redaction)


def retry_job(ask: Ask) -> JobFacts:
    retried = ask.app.jobs.retry(ask.path.job_id, reason=ask.body.reason, by=ask.by)
    return job_facts(retried.record, internals(ask.app).redaction)


def cancel_job(ask: Ask) -> JobFacts:
    cancelled = ask.app.jobs.cancel(ask.path.job_id, reason=ask.body.reason, by=ask.by)
    return job_facts(cancelled.record, internals(ask.app).redaction)


def delete_job(ask: Ask) -> None:
    ask.app.jobs.delete(ask.path.job_id, by=ask.by)


_JOBS, _JOB = "/api/v1/jobs", "/api/v1/jobs/{job_id}"
_WRONG_STATE = {409: "the job's state does not allow it"}

ROUTES = (
    Route(method="GET", path=_JOBS, role="read", handle=list_jobs, says="Jobs, newest first.", query=JobsQuery,
          answer=Page[JobFacts]),
    Route(method="POST", path=_JOBS, role="operate", handle=enqueue_job, body=NewJobBody, answer=EnqueuedFacts,
          status=201, says="Enqueue a call of a registered task.",
          also={200: "A live job has that key already: it is answered."}),
    Route(method="GET", path=_JOB, role="read", handle=get_job, says="A job with its history.", params=JobPath,
          answer=JobPageFacts),
    Route(method="DELETE", path=_JOB, role="operate", handle=delete_job, says="Delete a job that has ended.",
          params=JobPath, status=204, also=_WRONG_STATE),
    Route(method="GET", path=f"{_JOB}/history", role="read", handle=get_history, params=JobPath, answer=History,
          says="Every move of a job, oldest first."),
    Route(method="GET", path=f"{_JOB}/why", role="read", handle=get_job_why, params=JobPath, answer=JobWhyFacts,
          says="The state of a job, what it waits for, and what to do."),
    Route(method="GET", path=f"{_JOB}/logs", role="read", handle=get_logs, params=JobPath, query=LogsQuery,
          answer=Lines, streams="follow=true", says="What a job wrote, in order; or as it is written."),
    Route(method="POST", path=f"{_JOB}/retry", role="operate", handle=retry_job, params=JobPath, body=ReasonBody,
          answer=JobFacts, says="Put a failed or cancelled job back into its queue.", also=_WRONG_STATE),
    Route(method="POST", path=f"{_JOB}/copy", role="operate", handle=copy_job, params=JobPath, body=CopyBody,
          answer=JobFacts, status=201, says="Run a copy of a job, with the same or other arguments.",
          also={409: "The job keeps a collection in sync."}),
    Route(method="POST", path=f"{_JOB}/cancel", role="operate", handle=cancel_job, params=JobPath, body=ReasonBody,
          answer=JobFacts, says="Cancel a waiting job, or ask a running one to stop.", also=_WRONG_STATE),
)  # fmt: skip
