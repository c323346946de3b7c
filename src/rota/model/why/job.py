"""Explains the state of a job, what it waits for, and what to do about it: one answer for Python, the CLI and HTTP.

Every sentence is derived from the job's record and history, and from the nodes and the queue at the time of asking. It
also says what a job did at an earlier instant, which is why a schedule could not run then.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal, assert_never

from msgspec import Struct

from rota.model.jobs.job import State, history_of, ready_at
from rota.model.micros import SECOND, iso_text, micros_of
from rota.model.why.time_words import counted, span_words, wall_words

if TYPE_CHECKING:
    from rota.model.jobs.job import Job, Move

Values = dict[str, str | int | float | None]  # instants are ISO text in UTC, spans are seconds

Cause = Literal["running", "retry", "unknown task", "snooze", "queued", "held", "delay", "ended"]


class Sealed(Struct, frozen=True, kw_only=True):
    """Why a store accepts no work: it is being copied, was copied, or is being filled."""

    other: str  # the store it is copied to, or filled from
    is_done: bool = False  # everything was copied, and work continues there
    is_target: bool = False  # it is being filled from the other one

    @property
    def words(self) -> str:
        if self.is_target:
            return f"The store is sealed while it is filled from {self.other}"
        if self.is_done:
            return f"The store is sealed: everything in it was copied to {self.other}"
        return f"The store is sealed while it is copied to {self.other}"

    def fix(self, what: str) -> str:
        """A sentence about where work continues. `what` begins it: "The job runs"."""
        if self.is_target:
            return f"{what} when the copy has ended."
        if self.is_done:
            return f"{what} there: restart the nodes with the URL of that store."
        return f"{what} in the store it is copied to."


class Around(Struct, frozen=True, kw_only=True):
    """The circumstances of a schedule or a job: whether nodes can fire it and run its jobs."""

    now: int
    tz: str = "UTC"  # the zone in which times are shown
    has_scheduler: bool = True
    has_worker: bool = True  # for its queue
    knows_task: bool = True  # some worker does
    is_queue_paused: bool = False
    pause_reason: str = ""  # why it is paused, if a reason was given
    seal: Sealed | None = None  # why the store accepts no work


class Doing(Struct, frozen=True, kw_only=True):
    """The activity of a job at an instant, as the end of the sentence "It had not ended: …"."""

    cause: Cause
    words: str
    still: bool = False  # it has not moved since


class JobVerdict(Struct, frozen=True, kw_only=True):
    """The answer about a job: its outcome, in words, and what to do about it."""

    job_id: str
    state: State
    outcome: str  # its state, or the reason of its wait: waiting: queue paused
    sentence: str
    code: str  # of the cause, for programs and translations
    values: Values = {}
    fix: str = ""
    waits_for: str | None = None  # the job that must end first
    due_at: int | None = None  # when it may run, if that is still to come


class Answer(Struct, frozen=True, kw_only=True):
    """One case: its outcome, the sentences about it, and what to do."""

    outcome: str
    words: str
    code: str  # of the cause, for programs and translations
    values: Values = {}
    fix: str = ""


def why_job(job: Job, around: Around, awaited: Job | None = None) -> JobVerdict:
    """The answer about a job; `awaited` is the job that it waits for, if that is kept."""
    answer = _answer(job, around, awaited)
    is_coming = job.state is State.SCHEDULED and job.run_at > around.now
    return JobVerdict(
        job_id=job.id,
        state=job.state,
        outcome=answer.outcome,
        sentence=f"job {job.id} ({job.task}): {answer.words}",
        code=answer.code,
        values=answer.values,
        fix=answer.fix,
        waits_for=job.waits_for if job.state is State.HELD else None,
        due_at=job.run_at if is_coming else None,
    )


def _answer(job: Job, around: Around, awaited: Job | None) -> Answer:
    match job.state:
        case State.SUCCEEDED | State.FAILED | State.CANCELLED:
            return _ended(job, around.tz)
        case State.RUNNING:
            return _running(job, around)
        case State.HELD | State.SCHEDULED | State.QUEUED:
            return waiting(job, around, awaited)
        case _:
            assert_never(job.state)


def _ended(job: Job, tz: str) -> Answer:
    at = wall_words(job.finished_at or job.created_at, tz)
    tries = f" after {counted(job.attempts, 'attempt')}" if job.attempts else ""
    values: Values = {"at": iso_text(job.finished_at or job.created_at), "attempts": job.attempts}
    if job.state is State.SUCCEEDED:
        ran_for = "It ran" if job.attempts < 2 else "The last one ran"
        took = f" {ran_for} for {span_words((job.finished_at or 0) - job.started_at)}." if job.started_at else ""
        ran = seconds_of((job.finished_at or 0) - job.started_at) if job.started_at else None
        words = f"It succeeded at {at}{tries}.{took}"
        return Answer(outcome="succeeded", words=words, code="succeeded", values={**values, "ran": ran})
    again = f"`rota jobs retry {job.id}` runs it again."
    if job.state is State.CANCELLED:
        words = f"It was cancelled at {at}: {_reason(job)}."
        values |= {"reason": job.cancel_reason or ""}
        return Answer(outcome="cancelled", words=words, fix=again, code="cancelled", values=values)
    error = first_line(job.error)
    words = f"It failed at {at}{tries}: {error}."
    fix = f"`rota jobs show {job.id}` has the traceback. {again}"
    return Answer(outcome="failed", words=words, fix=fix, code="failed", values={**values, "error": error})


def _reason(job: Job) -> str:
    return job.cancel_reason or "no reason was given"


def _running(job: Job, around: Around) -> Answer:
    since = span_words(around.now - (job.started_at or around.now))
    words = f"Attempt {job.attempts + 1} has been running for {since} on {job.holder}."
    values: Values = {
        "attempt": job.attempts + 1,
        "ran": seconds_of(around.now - (job.started_at or around.now)),
        "node": job.holder,
    }
    if job.cancel_reason:
        values |= {"reason": job.cancel_reason}
        words += f" It was asked to stop ({job.cancel_reason}), and has not stopped yet."
        fix = 'The task must look at `current_job.cancelled`. With executor="process", it is ended for it.'
        return Answer(
            outcome="running: asked to stop", words=words, fix=fix, code="running.asked_to_stop", values=values
        )
    if job.lease_until is not None and job.lease_until < around.now:
        silent = around.now - max(job.lease_until, job.started_at or 0)  # a lease of an earlier boot ends at the epoch
        words += f" Its worker has not renewed the lease for {span_words(silent)}."
        fix = "A live node takes the job back and runs it again: start one with `rota run`."
        values |= {"silent": seconds_of(silent)}
        return Answer(
            outcome="running: lease expired",
            words=words,
            fix=fix if not around.has_worker else "",
            code="running.lease_expired",
            values=values,
        )
    return Answer(outcome="running", words=words, code="running", values=values)


def waiting(job: Job, around: Around, awaited: Job | None = None) -> Answer:
    """The answer about a job that is held, scheduled or queued: what it waits for."""
    if job.state is State.HELD:
        return _held(job, around, awaited)
    if job.state is State.SCHEDULED and job.run_at > around.now:
        return _later(job, around)
    return _in_queue(job, around)


def _held(job: Job, around: Around, awaited: Job | None) -> Answer:
    words = f"The job waits for job {job.waits_for} to end."
    outcome, code = "waiting: another job", "waiting.job"
    values: Values = {"job": job.waits_for, "doing": None}
    if awaited is None:
        return Answer(outcome=outcome, words=words, fix=f"`rota why {job.waits_for}`.", code=code, values=values)
    doing = doing_at(awaited, around.now, around.tz)
    words += f" That one has not ended: {doing.words}." if doing.cause != "ended" else ""
    fix = f"`rota why {job.waits_for}` says what it needs."
    return Answer(outcome=outcome, words=words, fix=fix, code=code, values={**values, "doing": doing.cause})


def _later(job: Job, around: Around) -> Answer:
    """A job that is due at a later instant: a delay, a retry, a snooze, or a task that its worker did not know."""
    due = f"{wall_words(job.run_at, around.tz)}, in {span_words(job.run_at - around.now)}"
    values: Values = {"at": iso_text(job.run_at), "in": seconds_of(job.run_at - around.now)}
    match _cause_of(history_of(job)[-1]):
        case "retry":
            words = (
                f"The job has failed {counted(job.failures, 'time')}: {first_line(job.error)}. "
                f"It is tried again at {due}."
            )
            fix = f"`rota jobs show {job.id}` has the traceback."
            values |= {"failures": job.failures, "error": first_line(job.error)}
            return Answer(outcome="waiting: retry", words=words, fix=fix, code="waiting.retry", values=values)
        case "unknown task":
            words = f"The worker that took the job does not know the task {job.task}. It is offered again at {due}."
            outcome, code = "waiting: task unknown to a worker", "waiting.unknown_to_one"
            if not around.knows_task:
                outcome, code = "waiting: task unknown to every worker", "waiting.unknown_to_all"
                words = f"{words} No worker knows the task."
            values |= {"task": job.task}
            return Answer(outcome=outcome, words=words, fix=unknown_fix(job.task), code=code, values=values)
        case "snooze":
            words = f"The task asked to run again at {due}."
            return Answer(outcome="waiting: snoozed", words=words, code="waiting.snooze", values=values)
        case _:
            return Answer(outcome="waiting", words=f"The job is due at {due}.", code="waiting.time", values=values)


def _in_queue(job: Job, around: Around) -> Answer:
    queue = job.queue
    ready_for = around.now - (ready_at(job) or around.now)
    since = f" It has been ready for {span_words(ready_for)}."
    values: Values = {"queue": queue, "ready": seconds_of(ready_for)}
    if around.is_queue_paused:
        why = f": {around.pause_reason.rstrip('.')}" if around.pause_reason else ""
        words = f"The job waits in the queue {queue}, which is paused{why}.{since}"
        values |= {"reason": around.pause_reason} if around.pause_reason else {}
        fix = f"`rota queues resume {queue}`."
        return Answer(outcome="waiting: queue paused", words=words, fix=fix, code="waiting.queue_paused", values=values)
    if around.seal is not None:
        words = f"The job waits in the queue {queue}. {around.seal.words}, so no job starts.{since}"
        fix = around.seal.fix("The job runs")
        return Answer(outcome="waiting: store sealed", words=words, fix=fix, code="waiting.sealed", values=values)
    if not around.has_worker:
        words = f"The job waits, and no worker takes jobs from the queue {queue}.{since}"
        fix = f"Start one: `rota worker TARGET -q {queue}`."
        outcome = "waiting: no worker for this queue"
        return Answer(outcome=outcome, words=words, fix=fix, code="waiting.no_worker", values=values)
    if not around.knows_task:
        words = f"The job waits, and no worker knows the task {job.task}.{since}"
        outcome, fix = "waiting: task unknown to every worker", unknown_fix(job.task)
        values |= {"task": job.task}
        return Answer(outcome=outcome, words=words, fix=fix, code="waiting.unknown_task", values=values)
    words = f"The job waits in the queue {queue} for a free worker.{since}"
    fix = "If that takes long, add workers or raise the job's priority."
    return Answer(outcome="waiting", words=words, fix=fix, code="waiting.worker", values=values)


def unknown_fix(task: str) -> str:
    return f"Deploy the code that has {task}, or correct the name of the task."


def seconds_of(micros: int) -> float:
    """A span as a value of an answer."""
    return max(0, micros) / SECOND


def first_line(error: str | None) -> str:
    return (error or "").partition("\n")[0].rstrip(".") or "no error was kept"


def first_run_at(job: Job) -> int | None:
    """When the first attempt began. A claim by a worker that does not know the task is none."""
    moves = history_of(job)
    for move, after in zip(moves, [*moves[1:], None], strict=True):
        if move.state is State.RUNNING and (after is None or _cause_of(after) != "unknown task"):
            return move.at
    return None


def span_of_attempts(job: Job) -> int | None:
    """How long a job that has ended took from the start of its first attempt, in microseconds; None if it never ran."""
    began = first_run_at(job)
    return None if began is None or job.finished_at is None else max(0, job.finished_at - began)


def doing_at(job: Job, at: int, tz: str) -> Doing:
    """The activity of a job at an instant, by its history."""
    moves = history_of(job)
    number = max((n for n, move in enumerate(moves) if move.at <= at), default=0)
    move, after = moves[number], moves[number + 1] if number + 1 < len(moves) else None
    cause = "unknown task" if after is not None and _cause_of(after) == "unknown task" else _cause_of(move)
    until = "" if after is None else f", until {wall_words(after.at, tz)}"
    return Doing(cause=cause, words=_doing_words(job, move, cause, at, tz) + until, still=after is None)


def _doing_words(job: Job, move: Move, cause: Cause, at: int, tz: str) -> str:
    span = span_words(at - move.at)
    due = wall_words(due_at(move), tz)
    match cause:
        case "running":
            return f"it had been running for {span}"
        case "retry":
            error = first_line((move.data or {}).get("error"))
            return f"an attempt had failed ({error}), and it was waiting for the next one at {due}"
        case "unknown task":
            return f"the worker that took it did not know the task {job.task}"
        case "snooze":
            return f"its task had asked to run again at {due}"
        case "queued":
            return f"it had been waiting for a worker in the queue {job.queue} for {span}"
        case "held":
            return f"it was waiting for job {(move.data or {}).get('waits_for')}"
        case "delay":
            return f"it was waiting for its time, {due}"
        case "ended":
            return f"it was {move.state.value}"
        case _:
            assert_never(cause)


def due_at(move: Move) -> int:
    """The time at which the job of a scheduled entry may run; of any other entry, its own time."""
    text = (move.data or {}).get("enqueue_at")
    return move.at if text is None else micros_of(datetime.fromisoformat(text))


def _cause_of(move: Move) -> Cause:
    match move.state:
        case State.RUNNING:
            return "running"
        case State.QUEUED:
            return "queued"
        case State.HELD:
            return "held"
        case State.SCHEDULED:
            known: dict[str, Cause] = {"retry": "retry", "unknown task": "unknown task", "snooze": "snooze"}
            return known.get((move.data or {}).get("cause", ""), "delay")
        case _:
            return "ended"
