"""Tracks one execution of one job, from claim to outcome. The first outcome that is reported counts."""

from __future__ import annotations

import threading
import time
import traceback
from contextvars import ContextVar
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from rota.clock import utc_micros
from rota.errors import BadOption, BadPayload, BadResult, LeaseLost, StoreSealed
from rota.failpoints import reach
from rota.model.jobs.outcome import Failed, RetryAsked, Returned, Snoozed, Stopped, Succeeded, TaskUnknown, Undecodable
from rota.model.jobs.payload import LARGEST, refuse_not_finite, unpack_call
from rota.model.jobs.retry import RetryPolicy
from rota.model.micros import optional_datetime
from rota.model.secrets.redaction import DEFAULT, Redaction, hidden
from rota.tasks.middleware import attempt_of, run_through
from rota.tasks.signals import Cancel, Retry, Snooze

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from rota.engine.executors.job_log import JobLog
    from rota.model.jobs.job import Job
    from rota.model.jobs.outcome import Outcome
    from rota.model.jobs.payload import Call
    from rota.tasks.middleware import JobAttempt
    from rota.tasks.task import Task


NOTHING_RETURNED = Succeeded(None)  # most tasks return nothing: one value serves them all
LONGEST_ERROR = 16_000  # characters of a traceback that are kept


class Finder(Protocol):
    """Finds tasks by name: an app's registry."""

    def find(self, name: str, /) -> Task[Any, Any] | None: ...


class Host(NamedTuple):
    """What a worker provides to its runs: one value for all of them."""

    done: Callable[[Run, Outcome], None]
    now: Callable[[], int] = utc_micros  # the store's clock, for the times of log lines
    monotonic: Callable[[], float] = time.monotonic
    end_in: Callable[[Run, object, Any], bool] | None = None  # ends a job with a caller's transaction
    on_progress: Callable[[str], None] | None = None  # called at once, if the worker is another process
    on_secrets: Callable[[tuple[str, ...]], None] | None = None  # likewise: what middleware decrypted
    redaction: Redaction = DEFAULT  # of the worker's settings


class ArgumentsUnfit(BadPayload):
    """The arguments from the middleware do not fit the task. No retry would change that."""


class Run:
    """A claimed job in this worker. (Attributes with a default are in the class until they are set.)"""

    ended_in = False  # with a caller's transaction
    task: Task[Any, Any] | None = None
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    call_meta: Mapping[str, Any] = MappingProxyType({})
    wrapped: Call | None = None  # the stored call, if it goes through middleware before its arguments are known
    policy = RetryPolicy()
    timeout: float | None = None
    deadline: float | None = None  # monotonic, once started
    started: float | None = None
    log: JobLog | None = None  # made with the first line
    progress: str | None = None  # what it last said, until the store has it
    stop_reason: str | None = None
    knows_of_stop = False  # it read that it was asked to stop
    on_stop: Callable[[], object] | None = None  # how an executor interrupts it, if it can
    is_lost = False
    is_over = False
    is_watched = False  # its executor keeps its deadline
    _secrets: tuple[str, ...] | None = None  # looked for when it first writes something

    def __init__(self, job: Job, host: Host, renewed_at: float = 0.0, lease_end: float = inf) -> None:
        self.job = job
        self.host = host
        self.renewed_at = renewed_at  # monotonic, before the claim or the renewal was sent
        self.lease_end = lease_end

    def prepare(self, registry: Finder) -> Outcome | None:
        """Find the task and decode the arguments; an outcome if that fails."""
        self.task = registry.find(self.job.task)
        if self.task is None:
            return TaskUnknown()
        try:
            call = unpack_call(self.job.payload)
            if self.task.middleware:
                self.wrapped = call
            else:
                self.args, self.kwargs = self.task.signature.typed(call)
        except Exception as err:  # noqa: BLE001 - a hint's own code may raise anything; the loop continues
            return Undecodable(f"{type(err).__name__}: {words_of(err)}")
        self.call_meta = call.meta
        retry = self.task.options.retry
        self.policy = retry if call.retries is None else retry._replace(retries=call.retries)
        timeout = self.task.options.timeout if call.timeout is None else call.timeout
        self.timeout = None if timeout is None else timeout / 1e6
        return None

    def hide(self, text: str) -> str:
        """A text that it wrote, without the secrets in its arguments."""
        return hidden(text, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets in its arguments, by what its job stores, by the worker's settings and by the task's marks.

        A name may have been added to the settings, or a mark to the task, after the job was made.
        """
        if self._secrets is None:
            self._secrets = _secrets_of(self.job.payload, self.host.redaction, self.task)
        return self._secrets

    def use_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Use the call that the middleware made of the stored one, converted by the hints, with its secrets hidden."""
        assert self.task is not None  # noqa: S101 - prepare() found it
        assert self.wrapped is not None  # noqa: S101 - only such a run is called
        call = msgspec.structs.replace(self.wrapped, args=list(args), kwargs=dict(kwargs))
        self.call_meta = meta
        is_replaced = (args, kwargs) != (self.wrapped.args, self.wrapped.kwargs)
        if is_replaced:
            found = _secrets_in(call, self.host.redaction, self.task)
            self.add_secrets(found)
            if found and self.host.on_secrets is not None:
                self.host.on_secrets(found)
        try:
            if is_replaced:  # a caller's own arguments were checked when they were enqueued
                self.task.signature.check(tuple(call.args), call.kwargs)
            self.args, self.kwargs = self.task.signature.typed(call)
        except Exception as err:
            raise ArgumentsUnfit(f"{type(err).__name__}: {words_of(err)}") from err

    def add_secrets(self, found: Sequence[str]) -> None:
        """Hide these texts too: the longest first, because one may be a part of another."""
        self._secrets = tuple(sorted({*self.secrets, *found}, key=len, reverse=True))

    def begin(self) -> bool:
        """Start the clock; False if the run is over already."""
        with _finishing:
            if self.is_over:
                return False
            self.started = self.host.monotonic()
        if self.timeout is not None:
            self.deadline = self.started + self.timeout
        return True

    def return_unless_begun(self, outcome: Returned = Returned()) -> None:  # noqa: B008 - it is frozen
        with _finishing:
            if self.is_over or self.started is not None:
                return
            self.is_over = True
        self.host.done(self, outcome)

    def finish(self, outcome: Outcome) -> bool:
        """Report how it ended; False if it has ended already (a timeout, a lost lease)."""
        with _finishing:
            if self.is_over:
                return False
            self.is_over = True
        self.host.done(self, outcome)
        return True

    def stop(self, reason: str) -> None:
        """Ask it to end. A coroutine is interrupted; a thread must look at current_job.cancelled."""
        self.stop_reason = self.stop_reason or reason
        if self.on_stop is not None:
            self.on_stop()

    def lose(self) -> None:
        """Its lease has expired: another worker may have the job. Nothing that it does counts any more."""
        self.is_lost = True
        self.stop("the lease was lost")


def _secrets_of(payload: bytes, redaction: Redaction, task: Task[Any, Any] | None) -> tuple[str, ...]:
    try:
        call = unpack_call(payload)
    except BadPayload:
        return ()
    return _secrets_in(call, redaction, task)


def _secrets_in(call: Call, redaction: Redaction, task: Task[Any, Any] | None) -> tuple[str, ...]:
    try:
        named = task.signature.secrets(tuple(call.args), call.kwargs, redaction.extra) if task is not None else []
    except Exception:  # noqa: BLE001 - a hint's own code may raise anything; the settings' names hold all the same
        named = []
    return redaction.texts_of(msgspec.structs.replace(call, secrets=[*call.secrets, *named]))


def too_late(run: Run, what_followed: str = "") -> Failed:
    """The outcome of a run whose time is up."""
    error = f"TimeoutError: {run.job.task} ran longer than its timeout of {run.timeout:g} s{what_followed}"
    return Failed(error, may_retry=run.policy.may_retry(TimeoutError()))


def words_of(err: BaseException) -> str:
    """An error's text, without what UTF-8 cannot encode."""
    try:
        text = str(err)
    except Exception:  # noqa: BLE001 - its own __str__ failed
        return "(its text cannot be shown)"
    return text.encode("utf-8", "backslashreplace").decode()


_finishing = threading.Lock()
_current: ContextVar[Run | None] = ContextVar("rota_current_run", default=None)


def run_here(run: Run) -> Outcome:
    """Run a plain function in this thread."""
    assert run.task is not None  # noqa: S101 - prepare() found it
    if run.stop_reason is not None:
        return Stopped(run.stop_reason)
    if not run.begin():
        return Returned()
    token = _current.set(run)
    try:
        reach("run.before")
        value = run.task.function(*run.args, **run.kwargs) if run.wrapped is None else _call_wrapped(run)
        reach("run.after")
        return success(value, run)
    except BaseException as err:  # noqa: BLE001 - whatever a task raises is its outcome
        return outcome_of(err, run)
    finally:
        _current.reset(token)


def _call_wrapped(run: Run) -> Any:
    """Call a plain function through its app's middleware."""
    task = run.task
    assert task is not None  # noqa: S101 - prepare() found it

    def call(attempt: JobAttempt) -> Any:
        run.use_arguments(attempt.args, attempt.kwargs, attempt.meta)
        return checked_result(task, task.function(*run.args, **run.kwargs))

    return run_through(task.middleware, first_attempt(run), call)


def first_attempt(run: Run) -> JobAttempt:
    """What the outermost middleware gets."""
    assert run.wrapped is not None  # noqa: S101 - only such a run is called
    return attempt_of(run.job, run.wrapped, current_job.meta)


def success(value: Any, run: Run) -> Outcome:
    """A return value is stored as JSON. One that cannot be stored is a failure that says why.

    A task that knew that it was asked to stop, and returned, has stopped: what it returns is not its work's result.
    """
    if run.knows_of_stop and run.stop_reason is not None:
        return Stopped(run.stop_reason)
    if run.task is not None and run.wrapped is None and (wrong := wrong_result(run.task, value)):
        return _bad_result(run, wrong)
    if value is None:
        return NOTHING_RETURNED
    encode = None if run.task is None else run.task.signature.encode
    try:
        result = msgspec.json.encode(value, enc_hook=encode)
        if b"null" in result:
            refuse_not_finite(value, f"the result of {run.job.task}", encode)
    except Exception as err:  # noqa: BLE001 - a value's own code may run here
        return _bad_result(run, f"a value that JSON cannot keep: {words_of(err)}")
    if len(result) > LARGEST:
        return _bad_result(run, f"{len(result):,} bytes; at most {LARGEST:,}")
    return Succeeded(result)


def wrong_result(task: Task[Any, Any], value: Any) -> str:
    """Why a result is not what the task's return hint says, if that is checked; "" otherwise."""
    return task.signature.wrong_result(value) if task.sender.checks_types else ""


def checked_result(task: Task[Any, Any], value: Any) -> Any:
    """The result of a task inside middleware, which may make something else of it."""
    if wrong := wrong_result(task, value):
        raise BadResult(f"{task.name} returned {wrong}")
    return value


def _bad_result(run: Run, what: str) -> Failed:
    """It is not tried again, because the same call would return the same."""
    return Failed(f"{BadResult.__name__}: {run.job.task} returned {what}", may_retry=False)


def outcome_of(err: BaseException, run: Run) -> Outcome:
    """The outcome that an exception stands for."""
    match err:
        case Snooze():
            return Snoozed(err.after, words_of(err))
        case Cancel():
            return Stopped(words_of(err))
        case Retry():
            return RetryAsked(err.after, f"Retry: {words_of(err)}")
        case _ if run.stop_reason is not None:
            return Stopped(run.stop_reason)
        case ArgumentsUnfit():
            return Undecodable(words_of(err))
        case _:
            may_retry = run.task is not None and run.task.options.retry.may_retry(err)
            return Failed(describe(err, run.hide), may_retry=may_retry, met_seal=isinstance(err, StoreSealed))


def describe(err: BaseException, hide: Callable[[str], str] = str) -> str:
    """The error in one line, then its traceback without Rota's own frames; secrets are hidden before it is cut."""
    first = f"{type(err).__name__}: {words_of(err)}".strip()
    frames = err.__traceback__.tb_next if err.__traceback__ else None
    trace = "".join(traceback.format_exception(type(err), err, frames))
    trace = trace.encode("utf-8", "backslashreplace").decode()
    text = hide(f"{first.splitlines()[0] if first else type(err).__name__}\n{trace}")
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}\n… (cut)"


class CurrentJob:
    """The job that this code runs in: `from rota import current_job`."""

    @property
    def id(self) -> str:
        """Its id."""
        return self._run.job.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._run.job.attempts + 1

    @property
    def schedule_id(self) -> str | None:
        """The schedule that made it, if one did."""
        return self._run.job.schedule_id

    @property
    def occurrence(self) -> datetime | None:
        """The nominal time of this run, if a schedule made it."""
        return optional_datetime(self._run.job.fire_at)

    @property
    def meta(self) -> dict[str, Any]:
        """What the sender attached; for a schedule's job also schedule_id, scheduled_at and trigger_type."""
        job = self._run.job
        if job.schedule_id is None:
            return dict(self._run.call_meta)
        nominal = self.occurrence
        return {
            **self._run.call_meta,
            "schedule_id": job.schedule_id,
            "scheduled_at": nominal.isoformat() if nominal else None,
            "trigger_type": job.made_by,
        }

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to stop, or no longer owns its job. Long loops look at this.

        A task that has read True here and then returns ends as cancelled.
        """
        run = self._run
        if run.stop_reason is None:
            return False
        run.knows_of_stop = True
        return True

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Record how far the job is: `current_job.progress(3, 10)`. It is stored within a second."""
        if isinstance(total, str):
            raise BadOption(f"progress(done, total) takes numbers, got {total!r}; write progress(done, note={total!r})")
        share = f"{done:g}/{total:g}" if total is not None else f"{done:g}"
        run = self._run
        run.progress = run.hide(f"{share} {note}".strip())[:200]
        if run.host.on_progress is not None:
            run.host.on_progress(run.progress)

    def finish_in(self, connection: object, result: object = None) -> None:
        """End this job as succeeded with the caller's own transaction: its effects and its end commit together.

        LeaseLost if another worker has the job by now: roll back, and leave it to that worker.
        """
        run = self._run
        end_in = run.host.end_in
        if end_in is None:
            raise LookupError("finish_in() is only known inside a worker")
        if not end_in(run, connection, result):
            raise LeaseLost("the lease was lost: another worker may run this job now; roll back")
        run.ended_in = True

    async def afinish_in(self, connection: object, result: object = None) -> None:
        """As finish_in, for a transaction of coroutines: psycopg's, SQLAlchemy's, SQLModel's, aiosqlite's.

        The connection is used by its own loop, so the store waits for it in another thread.
        """
        import asyncio  # noqa: PLC0415 - most children that run a job of their own need none of it

        from rota.store.shared.caller_connection import is_async, use_on_loop  # noqa: PLC0415

        if not is_async(connection):
            self.finish_in(connection, result)
            return
        await use_on_loop(connection, lambda bound: asyncio.to_thread(self.finish_in, bound, result))

    def check(self) -> None:
        """Raise LeaseLost if the lease was lost or the job was asked to stop."""
        if self._run.stop_reason is not None:
            raise LeaseLost(self._run.stop_reason)

    @property
    def _run(self) -> Run:
        run = _current.get()
        if run is None:
            raise LookupError("current_job is only known inside a running job")
        return run

    def __bool__(self) -> bool:
        return _current.get() is not None


current_job = CurrentJob()


def current_run() -> Run | None:
    """The run that this code belongs to, if any."""
    return _current.get()
