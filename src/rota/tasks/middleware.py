"""Wraps code of the user around the creation of jobs and around each attempt.

The first middleware of an app is the outermost one, on both sides. An app without any pays for one comparison.

The invariants: `enqueue` raises if and only if nothing was stored (of more jobs than one batch holds: nothing of the
batch that failed, and none after it); and an exception around an attempt is that attempt's outcome, so that the job's
retry policy decides what follows.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from rota.errors import BadOption, MiddlewareError, RotaError
from rota.model.jobs.payload import Call, Passed, pack_call, unpack_call
from rota.model.micros import optional_datetime
from rota.model.names import check_name, check_priority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rota.model.jobs.job import Job as JobRecord
    from rota.tasks.job import Job

R = TypeVar("R")
S = TypeVar("S", bound=msgspec.Struct)

log = logging.getLogger("rota.app")

_ORIGIN = "_rota_middleware_error"  # an attribute of exceptions that a middleware raised around creation


class JobDraft(Struct, frozen=True, kw_only=True):
    """A job that is about to be created, or the template of a schedule that is about to be put."""

    task: str
    args: Sequence[Any]  # as JSON gives them back: a date is text here
    kwargs: Mapping[str, Any]
    meta: Mapping[str, Any]
    queue: str
    priority: int
    key: str | None  # of a task with unique=True, a digest of its arguments
    schedule_id: str | None = None  # of a template; None for a job

    def replace(
        self,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        queue: str | None = None,
        priority: int | None = None,
    ) -> JobDraft:
        """The same draft with other values. `job.replace(meta={**job.meta, "tenant": "acme"})` adds one."""
        return _replaced(self, args=args, kwargs=kwargs, meta=meta, queue=queue, priority=priority)


class JobAttempt(Struct, frozen=True, kw_only=True):
    """One attempt of a job, as its middleware sees it."""

    id: str
    task: str
    args: Sequence[Any]  # as JSON gives them back; the task gets them as its hints say
    kwargs: Mapping[str, Any]
    meta: Mapping[str, Any]  # with schedule_id, scheduled_at and trigger_type if a schedule made the job
    queue: str
    attempt: int  # from 1
    created_at: datetime | None
    schedule_id: str | None = None
    occurrence: datetime | None = None  # the nominal time, if a schedule made the job

    def replace(
        self,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> JobAttempt:
        """The same attempt with other arguments or other metadata, for `call_next`."""
        return _replaced(self, args=args, kwargs=kwargs, meta=meta)


class Middleware:
    """The base class of middleware for `app.use()`. Override the methods that you need.

    `create` also wraps the calls of coroutines: it then runs in a thread, with the caller's context variables.
    """

    def create(self, jobs: Sequence[JobDraft], call_next: Callable[[Sequence[JobDraft]], Sequence[Job[Any]]]) -> None:
        """Wrap one `enqueue`, `enqueue_many` or put of schedules. `call_next` stores the drafts that it is given,
        and returns the jobs; for templates of schedules it returns none."""
        call_next(jobs)

    def run(self, job: JobAttempt, call_next: Callable[[JobAttempt], Any]) -> Any:
        """Wrap one attempt of a plain function. The return value is the job's result."""
        return call_next(job)

    async def arun(self, job: JobAttempt, call_next: Callable[[JobAttempt], Awaitable[Any]]) -> Any:
        """Wrap one attempt of a coroutine function. The return value is the job's result."""
        return await call_next(job)


class Wrapped(Protocol):
    """A task, as far as middleware knows it."""

    name: str
    is_async: bool


def check_middleware(middleware: object, before: Sequence[Middleware], tasks: Sequence[Wrapped]) -> Middleware:
    """Refuse a middleware that cannot be used, when it is registered."""
    if isinstance(middleware, type):
        raise BadOption(
            f"app.use() takes an object, got the class {middleware.__name__}; write {middleware.__name__}()"
        )
    if not isinstance(middleware, Middleware):
        raise BadOption(f"app.use() takes an object of a subclass of rota.Middleware, got {middleware!r}")
    if any(one is middleware for one in before):
        raise BadOption(f"{_name(middleware)} is in use already")
    for method, is_async in (("create", False), ("run", False), ("arun", True)):
        if inspect.iscoroutinefunction(getattr(middleware, method)) is not is_async:
            how = "async def" if is_async else "def"
            raise BadOption(f"{_name(middleware)}.{method}() must be defined with `{how}`")
    for task in tasks:
        check_wraps(middleware, task)
    return middleware


def check_wraps(middleware: Middleware, task: Wrapped) -> None:
    """Refuse a middleware that would silently not wrap this task: it has run() and no arun(), or the reverse."""
    has, needs = ("run", "arun") if task.is_async else ("arun", "run")
    if _overrides(middleware, has) and not _overrides(middleware, needs):
        kind = "coroutine" if task.is_async else "plain"
        raise BadOption(
            f"{_name(middleware)} has {has}() and no {needs}(), which wraps {kind} functions such as {task.name}; "
            f"define {needs}() too"
        )


def names_of(middleware: Sequence[Middleware]) -> tuple[str, ...]:
    """Their classes, in order: another process compares them with its own."""
    return tuple(map(_name, middleware))


def _overrides(middleware: Middleware, method: str) -> bool:
    return getattr(type(middleware), method) is not getattr(Middleware, method)


def _name(middleware: object) -> str:
    return type(middleware).__qualname__


# Creation.


class Creation:
    """One pass of drafts through the creation middleware."""

    def __init__(
        self,
        middleware: Sequence[Middleware],
        drafts: Sequence[JobDraft],
        store: Callable[[Sequence[JobDraft]], list[Job[Any]]],
    ) -> None:
        self._middleware = middleware
        self._drafts = drafts
        self._store = store
        self._stored: list[Job[Any]] | None = None
        self._known: Exception | None = None  # the error that is being raised, once its origin is known

    def go(self) -> list[Job[Any]]:
        try:
            self._pass(0, self._drafts)
        except Exception:
            if self._stored is None:
                raise
            log.exception("a middleware raised after its jobs were created; the jobs stand")
        if self._stored is None:  # a middleware caught the store's exception
            raise MiddlewareError(
                "a middleware hid the error of the store or of another middleware: nothing was created, or not all of "
                "more than 1,000 jobs; raise it again"
            )
        return self._stored

    def _pass(self, index: int, drafts: Sequence[JobDraft]) -> list[Job[Any]]:
        if index == len(self._middleware):
            self._stored = self._store_all(drafts)
            return self._stored
        current, has_called = self._middleware[index], False

        def call_next(wanted: Sequence[JobDraft]) -> list[Job[Any]]:
            nonlocal has_called
            if has_called:
                raise MiddlewareError(f"{_name(current)}.create() called call_next twice; the second call does nothing")
            has_called = True
            _check_drafts(current, drafts, wanted)
            return self._pass(index + 1, wanted)

        try:
            current.create(drafts, call_next)
        except Exception as err:
            self._note_origin(err, current)
            raise
        if not has_called:
            raise MiddlewareError(
                f"{_name(current)}.create() returned without calling call_next: nothing was created. "
                "Call it, or raise an error of your own"
            )
        return self._stored or []

    def _store_all(self, drafts: Sequence[JobDraft]) -> list[Job[Any]]:
        try:
            return self._store(drafts)
        except Exception as err:
            self._known = err  # not an error of the middleware that it passes through
            raise

    def _note_origin(self, err: Exception, middleware: Middleware) -> None:
        """Store with an error the middleware that raised it: the command line and HTTP name it to their users."""
        if err is self._known:
            return
        self._known = err
        if not isinstance(err, RotaError):
            setattr(err, _ORIGIN, _raised(err, middleware, self._drafts))


def error_of_middleware(err: BaseException) -> MiddlewareError | None:
    """The message about an exception that a middleware raised around creation; None if none did.

    A caller in Python gets its own exception. Users of the command line, HTTP and the dashboard get this sentence.
    """
    found = getattr(err, _ORIGIN, None)
    return found if isinstance(found, MiddlewareError) else None


def _raised(err: Exception, middleware: Middleware, drafts: Sequence[JobDraft]) -> MiddlewareError:
    first, more = drafts[0], len(drafts) - 1
    what = f"a job of task {first.task}"
    if first.schedule_id is not None:
        what = f"the template of schedule '{first.schedule_id}' (task {first.task})"
    also = f" and {more} more" if more else ""
    return MiddlewareError(
        f"the middleware {_name(middleware)} raised {type(err).__name__}: {err}. Its create() was given {what}{also}; "
        "nothing was created"
    )


def _check_drafts(middleware: Middleware, given: Sequence[JobDraft], wanted: object) -> None:
    if not isinstance(wanted, (list, tuple)) or not all(isinstance(one, JobDraft) for one in wanted):
        raise MiddlewareError(f"{_name(middleware)}.create() must give call_next a list of drafts, got {wanted!r}")
    if [(one.task, one.schedule_id) for one in wanted] != [(one.task, one.schedule_id) for one in given]:
        raise MiddlewareError(
            f"{_name(middleware)}.create() must give call_next a draft for each that it got, of the same task and in "
            f"the same order: it got {len(given)} and gave {len(wanted)}"
        )
    for one, before in zip(wanted, given, strict=True):
        if (one.queue, one.priority) != (before.queue, before.priority):
            check_name("queue", one.queue)
            check_priority(one.priority)


def draft_of(
    payload: bytes, *, task: str, queue: str, priority: int, key: str | None, schedule_id: str | None = None
) -> JobDraft:
    """The draft of a job or a template with this payload, as middleware gets it."""
    call = unpack_call(payload)
    return JobDraft(
        task=task,
        args=call.args,
        kwargs=call.kwargs,
        meta=call.meta,
        queue=queue,
        priority=priority,
        key=key,
        schedule_id=schedule_id,
    )


def passed_payload(payload: bytes, given: JobDraft, wanted: JobDraft) -> bytes:
    """A payload with the changes of the middleware."""
    is_same_call = (wanted.args, wanted.kwargs) == (given.args, given.kwargs)
    call = msgspec.structs.replace(
        unpack_call(payload),
        args=list(wanted.args),
        kwargs=dict(wanted.kwargs),
        meta=dict(wanted.meta),
        passed=Passed.YES if is_same_call else Passed.REPLACED,
    )
    return pack_call(call, what=wanted.task)


# Attempts.


def attempt_of(job: JobRecord, call: Call, meta: Mapping[str, Any]) -> JobAttempt:
    return JobAttempt(
        id=job.id,
        task=job.task,
        args=call.args,
        kwargs=call.kwargs,
        meta=meta,
        queue=job.queue,
        attempt=job.attempts + 1,
        created_at=optional_datetime(job.created_at),
        schedule_id=job.schedule_id,
        occurrence=optional_datetime(job.fire_at),
    )


def run_through(
    middleware: Sequence[Middleware], attempt: JobAttempt, function: Callable[[JobAttempt], Any], index: int = 0
) -> Any:
    """Call a plain function through the middleware."""
    if index == len(middleware):
        return function(attempt)
    current = middleware[index]
    link = _Link(current, "run")

    def call_next(wanted: JobAttempt) -> Any:
        link.check(wanted)
        return link.keep(run_through(middleware, wanted, function, index + 1))

    return link.result(current.run(attempt, call_next))


async def arun_through(
    middleware: Sequence[Middleware],
    attempt: JobAttempt,
    function: Callable[[JobAttempt], Awaitable[Any]],
    index: int = 0,
) -> Any:
    """Call a coroutine function through the middleware."""
    if index == len(middleware):
        return await function(attempt)
    current = middleware[index]
    link = _Link(current, "arun")

    async def call_next(wanted: JobAttempt) -> Any:
        link.check(wanted)
        return link.keep(await arun_through(middleware, wanted, function, index + 1))

    return link.result(await current.arun(attempt, call_next))


class _Link:
    """The use of `call_next` by one middleware in one attempt."""

    def __init__(self, middleware: Middleware, method: str) -> None:
        self._who = f"{_name(middleware)}.{method}()"
        self._has_called = False
        self._value: Any = None

    def check(self, wanted: object) -> None:
        self._has_called = True
        if not isinstance(wanted, JobAttempt):
            raise MiddlewareError(f"{self._who} must give call_next the attempt, got {wanted!r}")

    def keep(self, value: R) -> R:
        self._value = value
        return value

    def result(self, returned: R) -> R:
        if not self._has_called:
            raise MiddlewareError(
                f"{self._who} returned without calling call_next, so that the task did not run. "
                "Call it, or raise Cancel, Snooze, Retry or an error of your own"
            )
        if returned is None and self._value is not None:
            raise MiddlewareError(
                f"{self._who} returned None, and the task returned a value, which would be lost; "
                "return what call_next returned"
            )
        return returned


def _replaced(value: S, **changes: Any) -> S:
    return msgspec.structs.replace(value, **{name: said for name, said in changes.items() if said is not None})
