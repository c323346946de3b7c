"""Shows a job: as a row of a list, and as a page."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click
import msgspec

from rota.cli.columns import Column
from rota.cli.output import aligned, coloured, heading
from rota.cli.words import beside, count, first_line, instant, instant_with_millis, printable, relative, span
from rota.errors import BadPayload
from rota.inspector.calls import call
from rota.inspector.facts.job import job_problem
from rota.inspector.job_life import life_of
from rota.model.jobs.job import State, history_of, ready_at
from rota.model.jobs.payload import unpack_call
from rota.model.micros import SECOND, datetime_of, micros_of
from rota.model.why.job import span_of_attempts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.inspector.job_life import Stage
    from rota.model.jobs.job import Job, Move
    from rota.model.secrets.redaction import Redaction


def columns(now: datetime, redaction: Redaction) -> list[Column[Job]]:
    return [
        Column("job", lambda job: job.id),
        Column("state", lambda job: job.state.value),
        Column("call", lambda job: call_of(job, redaction), "cut"),
        Column("queue", lambda job: job.queue, dropped=2),
        Column("when", lambda job: _when(job, now)),
        Column("tries", lambda job: str(job.attempts), is_number=True, dropped=3),
        Column("note", _note, "cut", dropped=1),
    ]


def call_of(job: Job, redaction: Redaction) -> str:
    """The call as Python writes it, without its secrets."""
    try:
        made = redaction.shown(unpack_call(job.payload))
    except BadPayload:
        return f"{job.task}(…)"
    return call(job.task, made.args, made.kwargs)


def page(job: Job, now: datetime, redaction: Redaction) -> Iterator[str]:
    """Everything about one job."""
    yield f"{heading(f'job {job.id}')}  {coloured(job.state.value)}"
    yield ""
    yield f"  {call_of(job, redaction)}"
    yield ""
    yield from aligned(list(_rows(job, now)), indent="  ")
    yield ""
    yield heading("history")
    yield from aligned(_history_rows(history_of(job), now), indent="  ")
    if job.result:
        yield ""
        yield heading("result")
        yield from (f"  {line}" for line in _result_lines(job, redaction))
    yield from _error_sections(job, now)


def _result_lines(job: Job, redaction: Redaction) -> list[str]:
    try:
        msgspec.json.decode(job.result or b"null")
    except msgspec.MsgspecError as err:
        return [f"cannot be read: {err}"]
    result = msgspec.json.encode(redaction.result(job.result, job.payload))
    return msgspec.json.format(result).decode().splitlines()


def _when(job: Job, now: datetime) -> str:
    """The time that matters in its state."""
    match job.state:
        case State.SCHEDULED:
            return f"due {relative(datetime_of(job.run_at), now)}"
        case State.RUNNING:
            return f"for {_since(job.started_at, now)}"
        case State.QUEUED:
            return f"waits {_since(ready_at(job), now)}"
        case State.HELD:
            return f"waits {_since(history_of(job)[-1].at, now)}"
        case _:
            return relative(datetime_of(job.finished_at or job.created_at), now)


def _since(at: int | None, now: datetime) -> str:
    return span((now - datetime_of(at)).total_seconds()) if at is not None else "?"


def _note(job: Job) -> str:
    if job.state is State.HELD:
        return f"behind {job.waits_for}"
    return first_line(job_problem(job) or job.cancel_reason or job.error)


def _rows(job: Job, now: datetime) -> Iterator[list[str]]:
    if problem := job_problem(job):
        yield ["problem", problem]
    yield ["queue", f"{job.queue}, priority {job.priority}"]
    if job.schedule_id:
        nominal = f", for {instant(datetime_of(job.fire_at))}" if job.fire_at else ""
        yield ["schedule", f"{job.schedule_id}{nominal}" + (f" ({job.made_by})" if job.made_by else "")]
    if job.key:
        yield ["key", printable(job.key)]
    yield ["created", beside(datetime_of(job.created_at), now)]
    if job.state is State.SCHEDULED:
        yield ["due", beside(datetime_of(job.run_at), now)]
    if job.started_at is not None:
        yield ["started", beside(datetime_of(job.started_at), now)]
    if job.finished_at is not None:
        yield ["finished", f"{beside(datetime_of(job.finished_at), now)}{_took(job)}"]
    yield ["attempts", _attempts(job)]
    if job.holder:
        yield ["worker", job.holder]
    if job.waits_for:
        yield ["behind", f"job {job.waits_for}"]
    if job.cancel_reason and not job.state.is_final:
        yield ["asked to", f"stop: {first_line(job.cancel_reason)}"]


def _took(job: Job) -> str:
    words = run_words(job)
    return f", {words}" if words else ""


def run_words(job: Job) -> str:
    """How long a job that has ended ran: after 14 ms, or after 4 attempts in 5.1 s; "" if it never ran."""
    took = span_of_attempts(job)
    if took is None:
        return ""
    if job.attempts < 2:
        return f"after {span(took / SECOND)}"
    return f"after {count(job.attempts, 'attempt')} in {span(took / SECOND)}"


def _attempts(job: Job) -> str:
    """How often it was started, in words. The budgets count only the attempts since it was last retried by hand."""
    runs = [stage for stage in life_of(job, job.finished_at or job.started_at or 0) if _is_run(stage)]
    if not runs:
        return "none yet"
    parts = [f"started {_times(len(runs))}"]
    if job.failures:
        count_ = "counts" if job.failures == 1 else "count"
        parts.append(f"{count(job.failures, 'failure')} {count_} against its retries")
    lost = [stage for stage in runs if stage.ending == "lost"]
    processes = sum(stage.is_process_death for stage in lost)
    if len(lost) > processes:
        parts.append(f"{count(len(lost) - processes, 'worker')} died while it ran")
    if processes:
        parts.append(f"{processes:,} child {'process' if processes == 1 else 'processes'} died while it ran")
    return "; ".join(parts)


def _is_run(stage: Stage) -> bool:
    return stage.ending not in {None, "unknown"}


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _history_rows(moves: list[Move], now: datetime) -> list[list[str]]:
    """Each move with how long it lasted, so that every wait can be seen."""
    ends = [datetime_of(move.at) for move in moves[1:]] + [now]
    is_last = [False] * (len(moves) - 1) + [True]
    return [_history_row(move, end, is_last=last) for move, end, last in zip(moves, ends, is_last, strict=True)]


def _history_row(move: Move, end: datetime, *, is_last: bool) -> list[str]:
    at = datetime_of(move.at)
    lasted = span((end - at).total_seconds())
    worker = (move.data or {}).get("worker")
    reason = f"{move.reason} by {worker}" if worker else first_line(move.reason)
    return [
        instant_with_millis(at),
        coloured(move.state.value),
        _lasted_words(move.state, lasted, is_last=is_last),
        reason,
    ]


def _lasted_words(state: State, lasted: str, *, is_last: bool) -> str:
    if state.is_final:
        return "" if is_last else f"for {lasted}"
    if state is State.RUNNING:
        return f"running for {lasted}" if is_last else f"ran {lasted}"
    return f"waiting {lasted}" if is_last else f"waited {lasted}"


def _error_sections(job: Job, now: datetime) -> Iterator[str]:
    """The error of every attempt that failed; equal ones of attempts in a row once. A death may be the last error."""
    failed = [(one.attempt, one.error) for one in life_of(job, micros_of(now)) if one.ending == "failed" and one.error]
    if job.error and len(failed) < 2 and (not failed or failed[-1][1] == job.error):
        yield from _error_lines("error", job.error)
        return
    for (_, error), run in groupby(enumerate(failed), key=lambda one: (one[1][0] - one[0], one[1][1])):
        first, *others = [attempt for _, (attempt, _) in run]
        yield from _error_lines(f"error of attempt{f's {first} to {others[-1]}' if others else f' {first}'}", error)
    if job.error and failed[-1][1] != job.error:
        yield from _error_lines("error", job.error)


def _error_lines(title: str, error: str) -> Iterator[str]:
    """The traceback, its last line in red; or the error alone, if there is none."""
    first, *trace = error.rstrip().splitlines()
    last = trace.pop() if trace else first
    yield ""
    yield heading(title)
    yield from (f"  {printable(line)}" for line in trace)
    yield f"  {click.style(printable(last), fg='red')}"
