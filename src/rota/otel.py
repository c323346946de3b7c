"""Traces jobs with OpenTelemetry: a span per enqueue and per attempt, linked. Needs the extra `otel`.

    app.use(OpenTelemetry())

The context of the caller is stored in the job's meta, so that it survives delays and retries. The attempts of a job
continue the trace of its caller. A run of a schedule begins a trace of its own, linked to the one that put the
schedule, because a trace that lasts for months is of no use.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from rota.engine.executors.run import current_run, describe, words_of
from rota.tasks.middleware import JobAttempt, JobDraft, Middleware
from rota.tasks.signals import Cancel, Retry, Snooze

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from opentelemetry.trace import Span, Tracer, TracerProvider

    from rota.tasks.job import Job

META = "otel"  # the key in a job's meta
SEND, PROCESS = "send", "process"  # names of operations; the name of a span is this and the queue
_installing = threading.Lock()
_has_factory = False


class OpenTelemetry(Middleware):
    """The middleware. Without a provider of its own it uses the global one. `logs` adds trace ids to log records."""

    def __init__(self, tracer_provider: TracerProvider | None = None, *, logs: bool = True) -> None:
        self._tracer: Tracer = trace.get_tracer("rota", tracer_provider=tracer_provider)
        if logs:
            _add_ids_to_records()

    def create(self, jobs: Sequence[JobDraft], call_next: Callable[[Sequence[JobDraft]], Sequence[Job[Any]]]) -> None:
        if any(job.schedule_id for job in jobs):
            call_next(_carrying(jobs))  # without a span: a template must come out the same at every deploy
            return
        attributes = _of_sending(jobs)
        name = " ".join(filter(None, (SEND, attributes.get("messaging.destination.name"))))
        with self._tracer.start_as_current_span(name, kind=SpanKind.PRODUCER, attributes=attributes) as span:
            try:
                made = call_next(_carrying(jobs))
            except Exception as err:
                span.set_attribute("error.type", _type_of(err))
                raise
            if len(made) == 1:
                span.set_attribute("messaging.message.id", made[0].id)

    def run(self, job: JobAttempt, call_next: Callable[[JobAttempt], Any]) -> Any:
        with self._attempt(job):
            return call_next(job)

    async def arun(self, job: JobAttempt, call_next: Callable[[JobAttempt], Awaitable[Any]]) -> Any:
        with self._attempt(job):
            return await call_next(job)

    @contextmanager
    def _attempt(self, job: JobAttempt) -> Iterator[None]:
        carried = propagate.extract(_carrier(job.meta), context=Context())
        caller = trace.get_current_span(carried).get_span_context()
        with self._tracer.start_as_current_span(
            f"{PROCESS} {job.queue}",
            context=carried if job.schedule_id is None else Context(),
            kind=SpanKind.CONSUMER,
            attributes=_of_attempt(job),
            links=[Link(caller)] if caller.is_valid else [],
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except (Cancel, Snooze, Retry) as err:
                span.add_event("rota.signal", {"rota.signal": type(err).__name__})
                raise
            except BaseException as err:
                _note(span, err)
                raise


def _note(span: Span, err: BaseException) -> None:
    """Record an exception, without the secrets that the job was given."""
    run = current_run()
    hide = str if run is None else run.hide
    message = hide(words_of(err))
    span.record_exception(err, {"exception.message": message, "exception.stacktrace": describe(err, hide)})
    span.set_attribute("error.type", _type_of(err))
    span.set_status(Status(StatusCode.ERROR, f"{type(err).__name__}: {message}"))


def _type_of(err: BaseException) -> str:
    """The name of its class, as `exception.type` has it."""
    kind = type(err)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _carrying(jobs: Sequence[JobDraft]) -> list[JobDraft]:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    if not carrier:
        return list(jobs)
    return [job.replace(meta={**job.meta, META: carrier}) for job in jobs]


def _carrier(meta: Mapping[str, Any]) -> dict[str, str]:
    found = meta.get(META)
    return found if isinstance(found, dict) else {}


def _of_sending(jobs: Sequence[JobDraft]) -> dict[str, Any]:
    tasks, queues = sorted({job.task for job in jobs}), {job.queue for job in jobs}
    one_queue = {"messaging.destination.name": jobs[0].queue} if len(queues) == 1 else {}
    many = {"messaging.batch.message_count": len(jobs)} if len(jobs) > 1 else {}
    return {
        "messaging.system": "rota",
        "messaging.operation.name": SEND,
        "messaging.operation.type": "send",
        **one_queue,
        "rota.task": tasks[0] if len(tasks) == 1 else tasks,
        **many,
    }


def _of_attempt(job: JobAttempt) -> dict[str, Any]:
    schedule = {} if job.schedule_id is None else {"rota.schedule_id": job.schedule_id}
    return {
        "messaging.system": "rota",
        "messaging.operation.name": PROCESS,
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "rota.task": job.task,
        "rota.attempt": job.attempt,
        **schedule,
    }


def _add_ids_to_records() -> None:
    """Give log records the ids of the current span, as `trace_id` and `span_id`; once per process."""
    global _has_factory  # noqa: PLW0603 - logging has one factory per process, too
    with _installing:
        if _has_factory:
            return
        _has_factory = True
    make = logging.getLogRecordFactory()

    def with_ids(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            record.trace_id, record.span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
        return record

    logging.setLogRecordFactory(with_ids)
