"""Reports failed attempts to Sentry, with the job, its task and its schedule. Needs the extra `sentry`.

    sentry_sdk.init(dsn=…)
    app.use(Sentry())

Each attempt has a scope of its own, and continues the trace of its caller. Arguments are not sent. Values that are
marked as secrets are hidden in every event of the attempt.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sentry_sdk

from rota.engine.executors.run import current_run
from rota.tasks.middleware import JobAttempt, JobDraft, Middleware
from rota.tasks.signals import Cancel, Retry, Snooze

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from rota.tasks.job import Job

META = "sentry"  # the key in a job's meta


class Sentry(Middleware):
    """The middleware. Every failed attempt is an event, also one that is retried."""

    def create(self, jobs: Sequence[JobDraft], call_next: Callable[[Sequence[JobDraft]], Sequence[Job[Any]]]) -> None:
        headers = {"sentry-trace": sentry_sdk.get_traceparent(), "baggage": sentry_sdk.get_baggage()}
        carried = {name: value for name, value in headers.items() if value}
        if not carried or any(job.schedule_id for job in jobs):  # a template must come out the same at every deploy
            call_next(jobs)
            return
        call_next([job.replace(meta={**job.meta, META: carried}) for job in jobs])

    def run(self, job: JobAttempt, call_next: Callable[[JobAttempt], Any]) -> Any:
        with _attempt(job):
            return call_next(job)

    async def arun(self, job: JobAttempt, call_next: Callable[[JobAttempt], Awaitable[Any]]) -> Any:
        with _attempt(job):
            return await call_next(job)


@contextmanager
def _attempt(job: JobAttempt) -> Iterator[None]:
    carried = job.meta.get(META)
    with sentry_sdk.isolation_scope() as scope:
        transaction = sentry_sdk.continue_trace(
            carried if isinstance(carried, dict) else {}, op="queue.process", name=job.task, source="task"
        )
        scope.set_transaction_name(job.task, source="task")
        scope.add_event_processor(_without_secrets())
        for name, value in _tags(job).items():
            scope.set_tag(name, value)
        scope.set_context("rota", {**_tags(job), "rota.attempt": job.attempt, "rota.queue": job.queue})
        with sentry_sdk.start_transaction(transaction):
            try:
                yield
            except (Cancel, Snooze, Retry):
                raise
            except BaseException as err:
                sentry_sdk.capture_exception(err)
                raise


def _without_secrets() -> Callable[[Any, Any], Any]:
    """Hides the secrets of the job that runs now in an event: in messages, breadcrumbs and variables."""
    run = current_run()

    def hide(value: Any) -> Any:
        if isinstance(value, str):
            return value if run is None else run.hide(value)
        if isinstance(value, dict):
            return {name: hide(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [hide(inner) for inner in value]
        return value

    def process(event: Any, _hint: Any) -> Any:
        return event if run is None or not run.secrets else hide(event)

    return process


def _tags(job: JobAttempt) -> dict[str, str]:
    schedule = {} if job.schedule_id is None else {"rota.schedule_id": job.schedule_id}
    return {"rota.task": job.task, "rota.job_id": job.id, **schedule}
