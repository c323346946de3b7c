"""Runner: calls the task's function and turns whatever happens into an outcome."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any

import msgspec

from rota.engine.executors.run import _current, words_of
from rota.errors import BadResult, StoreMoved
from rota.failpoints import reach
from rota.model.outcome import Failed, GivenBack, RetryAsked, Snoozed, Stopped, Succeeded
from rota.model.payload import LARGEST, refuse_not_finite
from rota.tasks.signals import Cancel, Retry, Snooze

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.executors.run import Run
    from rota.model.outcome import Outcome

NOTHING_RETURNED = Succeeded(None)  # most tasks return nothing: one value serves them all
LONGEST_ERROR = 16_000  # characters of a traceback that are kept


def run_here(run: Run) -> Outcome:
    """Run a plain function in this thread."""
    assert run.task is not None  # noqa: S101 - prepare() found it
    if run.stop_reason is not None:
        return Stopped(run.stop_reason)
    if not run.begin():
        return GivenBack()
    token = _current.set(run)
    try:
        reach("run.before")
        value = run.task.function(*run.args, **run.kwargs)
        reach("run.after")
        return success(value, run)
    except BaseException as err:  # noqa: BLE001 - whatever a task raises is its outcome
        return outcome_of(err, run)
    finally:
        _current.reset(token)


async def run_async(run: Run) -> Outcome:
    """Run a coroutine function on this loop."""
    assert run.task is not None  # noqa: S101 - prepare() found it
    if not run.begin():
        return GivenBack()
    token = _current.set(run)
    try:
        value = await run.task.function(*run.args, **run.kwargs)
        return success(value, run)
    except asyncio.CancelledError:
        if run.stop_reason is None:
            return Failed("CancelledError: the task cancelled itself")
        return Stopped(run.stop_reason)
    except BaseException as err:  # noqa: BLE001 - whatever a task raises is its outcome
        return outcome_of(err, run)
    finally:
        _current.reset(token)


def success(value: Any, run: Run) -> Outcome:
    """A return value is kept as JSON; one that cannot be is a failure told in plain words.

    A task that knew that it was asked to stop, and returned, has stopped: what it returns is not its work's result.
    """
    if run.knows_of_stop and run.stop_reason is not None:
        return Stopped(run.stop_reason)
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


def _bad_result(run: Run, what: str) -> Failed:
    """The same call would return the same again, so it is not tried again."""
    return Failed(f"{BadResult.__name__}: {run.job.task} returned {what}", may_retry=False)


def outcome_of(err: BaseException, run: Run) -> Outcome:
    """What an exception means."""
    match err:
        case Snooze():
            return Snoozed(err.after, words_of(err))
        case Cancel():
            return Stopped(words_of(err))
        case Retry():
            return RetryAsked(err.after, f"Retry: {words_of(err)}")
        case _ if run.stop_reason is not None:
            return Stopped(run.stop_reason)
        case _:
            may_retry = run.task is not None and run.task.options.retry.may_retry(err)
            return Failed(describe(err, run.hide), may_retry=may_retry, met_seal=isinstance(err, StoreMoved))


def describe(err: BaseException, hide: Callable[[str], str] = str) -> str:
    """The error in one line, then its traceback without Rota's own frames; secrets are hidden before it is cut."""
    first = f"{type(err).__name__}: {words_of(err)}".strip()
    frames = err.__traceback__.tb_next if err.__traceback__ else None
    trace = "".join(traceback.format_exception(type(err), err, frames))
    trace = trace.encode("utf-8", "backslashreplace").decode()
    text = hide(f"{first.splitlines()[0] if first else type(err).__name__}\n{trace}")
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}\n… (cut)"
