"""Decides what becomes of a job when an attempt ends, its worker dies, or a person changes it.

Each function is pure: a job and a fact in, a Change out. Stores apply a Change only if the job still is what the
decision was made on (same state, same lease number), so that a late or stale decision changes nothing. A job that was
asked to stop never goes back to its queue: instead of a retry or a return, it ends as cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import Struct

from rota.errors import Refused, UnlawfulMove
from rota.model.collection import collection_of
from rota.model.jobs.job import Job, Move, State, check_move, folded, history_of, holds_key, scheduled_move
from rota.model.jobs.outcome import (
    Died,
    Failed,
    Outcome,
    RetryAsked,
    Returned,
    Snoozed,
    Stopped,
    Succeeded,
    TaskUnknown,
    Undecodable,
)
from rota.model.jobs.retry import MAX_DEATHS, UNKNOWN_TASK_PAUSE
from rota.model.reasons import reason_text
from rota.model.secrets.redaction import DEFAULT, hidden
from rota.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from rota.model.jobs.retry import RetryPolicy

EXPIRED = "stopped renewing its lease"  # as in the reason lease_expired


class Change(Struct, frozen=True, kw_only=True, gc=False):
    """One move of one job: the job that it was decided on, and every field that it sets."""

    job: Job  # as it was when this was decided
    state: State
    run_at: int
    attempts: int
    failures: int
    deaths: int
    past: bytes
    key: str | None  # no default for this and the slot: a change that forgot them would free them for another job
    slot: str | None
    queued_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    cancel_reason: str | None = None
    error: str | None = None
    result: bytes | None = None
    is_removal: bool = False  # auto-remove: the row is deleted, its occurrence stays
    ended_at: int | None = None  # when the attempt ended, where the job did not; it is not kept

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def keeps_cancel(self) -> bool:
        """Whether a cancel request that the store has, and that this decision did not know of, stays with the job: the
        history of a success says that it came too late."""
        return self.state is State.SUCCEEDED

    @property
    def is_last_run(self) -> bool:
        """Whether the job's schedule records it as its last run: the job has ended, or an attempt failed and the next
        one waits."""
        failed = self.failures > self.job.failures
        return self.job.schedule_id is not None and (self.state.is_final or failed)

    @property
    def can_use_fast_path(self) -> bool:
        """Whether it sets a final state, its time, the attempts and the result, and leaves the rest as it is."""
        job = self.job
        return (
            self.only_ends
            and job.cancel_reason is None
            and (self.failures, self.cancel_reason) == (job.failures, job.cancel_reason)
            and (self.error, self.key, self.slot) == (job.error, job.key, job.slot)
        )

    @property
    def only_ends(self) -> bool:
        """Whether it ends the job, and leaves the times before, the deaths and the past as they are."""
        job = self.job
        return (
            self.finished_at is not None
            and (self.run_at, self.queued_at, self.started_at) == (job.run_at, job.queued_at, job.started_at)
            and (self.deaths, self.past) == (job.deaths, job.past)
        )


def settle(
    job: Job,
    outcome: Outcome,
    policy: RetryPolicy,
    now: int,
    random: float,
    *,
    keep: bool = True,
    secrets: tuple[str, ...] | None = None,
) -> Change:
    """The change of a running job whose attempt has ended. `keep=False` removes the job once it has succeeded.

    `secrets` are hidden in what the outcome says; without them, those that the job itself names.
    """
    now = _no_earlier_than_its_start(job, now)
    if type(outcome) is Succeeded:  # most do, so it is checked first; a match is slower
        late = job.cancel_reason  # its history says that the cancel came too late
        return _finish(job, State.SUCCEEDED, now, result=outcome.result, cancel_reason=late, is_removal=not keep)
    texts = DEFAULT.texts(job.payload) if secrets is None else secrets
    return _settle_unusual(job, _without_secrets(outcome, texts), policy, now, random)


def _settle_unusual(job: Job, outcome: Outcome, policy: RetryPolicy, now: int, random: float) -> Change:
    match outcome:
        case Failed(error, may_retry):
            return _fail(job, error, policy, now, random) if may_retry else _finish(job, State.FAILED, now, error=error)
        case RetryAsked(after, error):
            return _fail(job, error, policy, now, random, after=after)
        case Snoozed(after, reason):
            return _wait(job, now + after, now, reason, "snooze", attempts=job.attempts + 1)
        case Stopped(reason):
            return _finish(job, State.CANCELLED, now, cancel_reason=reason)
        case TaskUnknown():
            reason = reason_text("unknown_task", task=job.task)
            return _wait(job, now + UNKNOWN_TASK_PAUSE, now, reason, "unknown task")
        case Undecodable(error):
            return _finish(job, State.FAILED, now, error=error)
        case Returned(reason):
            return _requeue(job, now, reason)
        case Died(reason):
            return _die(job, now, "process_died", "last_process", reason)
        case Succeeded():
            raise AssertionError("answered above")
        case _:
            assert_never(outcome)


def _without_secrets(outcome: Outcome, texts: tuple[str, ...]) -> Outcome:
    """The outcome with these secrets hidden in its texts: those are kept, logged and shown."""
    match outcome:
        case Failed(error) | RetryAsked(_, error) | Undecodable(error) if texts:
            return outcome._replace(error=hidden(error, texts))
        case Snoozed(_, reason) | Stopped(reason) | Returned(reason) | Died(reason) if texts:
            return outcome._replace(reason=hidden(reason, texts))
        case _:
            return outcome


def rescue(job: Job, now: int, how: str = EXPIRED) -> Change:
    """The change of a running job whose worker is lost: its lease expired, or its process was seen to die."""
    lost = f"{job.holder} {how}"
    now = _no_earlier_than_its_start(job, now)
    return _die(job, now, "worker_lost", "last_worker", lost)


def _no_earlier_than_its_start(job: Job, now: int) -> int:
    """The instant, or the start of the attempt if that is later: a node's view of the store's clock may lag by a
    reply's time."""
    return now if job.started_at is None or now > job.started_at else job.started_at


def release(job: Job, now: int) -> Change:
    """A held job whose predecessor has ended: it is released, and an occurrence takes over its schedule's slot."""
    if job.run_at > now:
        change = _change(job, State.SCHEDULED, job.run_at, past=folded(job, _released_move(job, now)))
    else:
        change = _change(job, State.QUEUED, job.run_at, past=job.past, queued_at=now)
    is_occurrence = job.schedule_id is not None and job.fire_at is not None
    return msgspec.structs.replace(change, slot=job.schedule_id) if is_occurrence else change


def _released_move(job: Job, now: int) -> Move:
    return scheduled_move(now, job.run_at, reason_text("released"), "released")


def still_awaited(job: Job, find: Callable[[str], Job | None]) -> str | None:
    """The live job that a held one must wait for: past links of a chain that were cancelled unstarted. None: it is
    released."""
    awaited = find(job.waits_for) if job.waits_for else None
    while awaited is not None and not awaited.is_live:
        was_skipped = awaited.state is State.CANCELLED and history_of(awaited)[-2].state is State.HELD
        awaited = find(awaited.waits_for) if was_skipped and awaited.waits_for else None
    return awaited.id if awaited else None


def cancel(job: Job, now: int, reason: str) -> Change:
    """A waiting job, cancelled. (A running one is asked to stop instead.)"""
    return _finish(job, State.CANCELLED, now, attempts=job.attempts, cancel_reason=reason)


def retry_by_hand(job: Job, now: int, reason: str) -> Change:
    """A failed or cancelled job, tried again with fresh budgets; not before its time, if that is still to come. The
    pause of a retry or a snooze does not count: a person who retries a job that had begun wants it now.

    It gave up its slot and its key when it ended, and takes neither back: others may have them by now, and a person who
    retries a job wants this one to run. It still has a key whose period is not over. A job created before it was due
    asks for its key when it is due.
    """
    if job.state not in {State.FAILED, State.CANCELLED}:
        raise UnlawfulMove(
            sentence(
                "refused.retry", "a {state} job cannot be retried; only a failed or cancelled one can", state=job.state
            )
        )
    if (names := collection_of(job)) is not None:
        raise Refused(
            sentence(
                "refused.sync_job",
                "job {job} kept {collection} in sync, which another may do by now; start a new one "
                "instead: `rota sources run {names}`",
                job=job.id,
                collection="/".join(names),
                names=" ".join(names),
            )
        )
    waits = job.run_at > now and not job.lease_no
    move = scheduled_move(now, job.run_at, reason, "delay") if waits else Move(State.QUEUED, now, reason)
    change = _change(job, move.state, job.run_at if waits else now, past=folded(job, move), failures=0, deaths=0)
    return msgspec.structs.replace(change, key=_kept_key(job, now))


def _fail(job: Job, error: str, policy: RetryPolicy, now: int, random: float, *, after: int | None = None) -> Change:
    failures = job.failures + 1
    if failures > policy.retries and not job.cancel_reason:
        return _finish(job, State.FAILED, now, failures=failures, error=error)
    pause = policy.backoff.pause(failures, random) if after is None else after
    reason = reason_text("retry", failures=failures, retries=policy.retries, error=error.partition("\n")[0])
    return _wait(job, now + pause, now, reason, "retry", attempts=job.attempts + 1, failures=failures, error=error)


def _die(job: Job, now: int, one: str, many: str, lost: str) -> Change:
    """A death spends no retry; the last one that a job may have fails it."""
    deaths = job.deaths + 1
    if deaths >= MAX_DEATHS and not job.cancel_reason:
        return _finish(job, State.FAILED, now, deaths=deaths, error=reason_text(many, deaths=deaths, lost=lost))
    return _requeue(job, now, reason_text(one, lost=lost, deaths=deaths, most=MAX_DEATHS), deaths=deaths)


def _wait(
    job: Job,
    run_at: int,
    now: int,
    reason: str,
    cause: str,
    *,
    attempts: int | None = None,
    failures: int | None = None,
    error: str | None = None,
) -> Change:
    if job.cancel_reason:
        return _finish(job, State.CANCELLED, now, failures=failures, error=error, cancel_reason=job.cancel_reason)
    past = folded(job, scheduled_move(now, run_at, reason, cause, error=error or None))
    change = _change(job, State.SCHEDULED, run_at, past=past, attempts=attempts, failures=failures, error=error)
    return msgspec.structs.replace(change, ended_at=now)


def _requeue(job: Job, now: int, reason: str, *, deaths: int | None = None) -> Change:
    if job.cancel_reason:
        return _finish(job, State.CANCELLED, now, deaths=deaths, cancel_reason=job.cancel_reason)
    past = folded(job, Move(State.QUEUED, now, reason))
    return _change(job, State.QUEUED, job.run_at, past=past, deaths=deaths, error=job.error)


def _finish(
    job: Job,
    state: State,
    now: int,
    *,
    attempts: int | None = None,
    failures: int | None = None,
    deaths: int | None = None,
    error: str | None = None,
    result: bytes | None = None,
    cancel_reason: str | None = None,
    is_removal: bool = False,
) -> Change:
    """A final move. Its entry stays in the fields, so nothing is packed. It frees the slot, and the key unless its
    period is not over yet."""
    check_move(job.state, state)
    ended = job.attempts + 1 if deaths is None else job.attempts
    key = None if job.key is None else _kept_key(job, now)  # most have none
    return Change(
        job=job,
        state=state,
        run_at=job.run_at,
        attempts=ended if attempts is None else attempts,
        failures=job.failures if failures is None else failures,
        deaths=job.deaths if deaths is None else deaths,
        past=job.past,
        key=key,
        slot=None,
        queued_at=job.queued_at,
        started_at=job.started_at,
        finished_at=now,
        cancel_reason=cancel_reason,
        error=error,
        result=result,
        is_removal=is_removal and key is None,  # a key that still holds needs its job
    )


def _change(
    job: Job,
    state: State,
    run_at: int,
    *,
    past: bytes,
    attempts: int | None = None,
    failures: int | None = None,
    deaths: int | None = None,
    queued_at: int | None = None,
    started_at: int | None = None,
    cancel_reason: str | None = None,
    error: str | None = None,
) -> Change:
    """A move that is not final: the slot and the key stay with the job."""
    check_move(job.state, state)
    return Change(
        job=job,
        state=state,
        run_at=run_at,
        queued_at=queued_at,
        started_at=started_at,
        attempts=job.attempts if attempts is None else attempts,
        failures=job.failures if failures is None else failures,
        deaths=job.deaths if deaths is None else deaths,
        cancel_reason=cancel_reason,
        error=error,
        past=past,
        key=job.key,
        slot=job.slot,
    )


def _kept_key(job: Job, now: int) -> str | None:
    """The key that a job still has once it has ended."""
    return job.key if holds_key(State.SUCCEEDED, job.key_until, now) else None


def apply(change: Change) -> Job:
    """The job after a change. Its lease is over, whatever it becomes."""
    job = change.job
    return msgspec.structs.replace(
        job,
        state=change.state,
        run_at=change.run_at,
        queued_at=change.queued_at,
        started_at=change.started_at,
        finished_at=change.finished_at,
        attempts=change.attempts,
        failures=change.failures,
        deaths=change.deaths,
        cancel_reason=change.cancel_reason,
        error=change.error,
        result=change.result,
        past=change.past,
        key=change.key,
        slot=change.slot,
        holder=job.holder if change.state.is_final else None,
        lease_until=None,
    )


def was_recorded(change: Change, job: Job | None) -> bool:
    """Whether a job is what this change makes of it: the reply to an earlier call that recorded it was lost."""
    if job is None:
        return change.is_removal
    made = apply(change)
    return (job.state, job.lease_no, job.attempts, job.run_at, job.finished_at) == (
        made.state,
        made.lease_no,
        made.attempts,
        made.run_at,
        made.finished_at,
    )


def apply_to(current: Job, change: Change) -> Job:
    """The job after a change, with what may have been written to it since the change was decided."""
    late = current.cancel_reason if change.keeps_cancel else None
    return msgspec.structs.replace(
        apply(change),
        cancel_reason=change.cancel_reason or late,
        progress=current.progress,
        waits_for=current.waits_for,
    )


def open_queues(queues: Iterable[str], paused: Container[str]) -> list[str]:
    """The queues that a claim looks at: those of the request, once each, without those that are paused."""
    return [queue for queue in dict.fromkeys(queues) if queue not in paused]


def claim_order(job: Job) -> tuple[int, int]:
    """Ready jobs are claimed higher priority first, then older first; several queues are one merged order."""
    return -job.priority, job.seq


def due_order(job: Job) -> tuple[int, int]:
    """Scheduled jobs become ready, and jobs that were created before they are due are decided, in the order of their
    times."""
    return job.run_at, job.seq


def claim(job: Job, holder: str, now: int, lease_until: int) -> Job:
    """A queued job under a new lease. One that is claimed early starts at its time."""
    check_move(job.state, State.RUNNING)
    return msgspec.structs.replace(
        job,
        state=State.RUNNING,
        started_at=max(now, job.queued_at or 0),
        progress=None,  # of the attempt before
        lease_no=job.lease_no + 1,
        holder=holder,
        lease_until=lease_until,
    )


def promote(job: Job, now: int) -> Job:
    """A scheduled job that becomes ready: it is due, or is claimed early."""
    check_move(job.state, State.QUEUED)
    return msgspec.structs.replace(job, state=State.QUEUED, queued_at=max(now, job.run_at))
