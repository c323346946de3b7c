"""Defines jobs: a request to run a task as a frozen value, its states, its acceptance by a store, and its history.

The states and the only lawful moves between them are a table; nothing else changes a state. Every move is one entry of
the history, with a reason and data. The current attempt's moves are fields, earlier ones are packed. The fields that a
job keeps for as long as it lives (its queue and priority) are not packed, but added when the history is read.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from rota.errors import UnlawfulMove
from rota.model.micros import SECOND, iso_text
from rota.model.reasons import REASONS, reason_text
from rota.model.secrets.shown import without

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

ENQUEUED = REASONS["enqueued"]


class State(StrEnum):
    """The state of a job, as an adjective: "the job is queued"."""

    SCHEDULED = "scheduled"  # due later; with attempts behind it, it is waiting for its next one
    QUEUED = "queued"  # ready for a worker
    RUNNING = "running"  # under a lease
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    HELD = "held"  # waits for another job to end

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def is_waiting(self) -> bool:
        return self in WAITING


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
WAITING = frozenset({State.SCHEDULED, State.QUEUED, State.HELD})

MOVES: dict[State, frozenset[State]] = {
    State.SCHEDULED: frozenset({State.QUEUED, State.HELD, State.CANCELLED}),  # held: lookahead, and it would overlap
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset({State.SCHEDULED, State.QUEUED, *FINAL}),
    State.HELD: frozenset({State.QUEUED, State.SCHEDULED, State.CANCELLED}),  # scheduled: released before its time
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset({State.QUEUED, State.SCHEDULED}),  # retried by hand; scheduled: its time is still to come
    State.CANCELLED: frozenset({State.QUEUED, State.SCHEDULED}),
}
FIRST_STATES = frozenset({State.SCHEDULED, State.QUEUED, State.HELD})  # the states that a new job may have


def check_move(before: State, after: State) -> None:
    """Raise if the table has no such move."""
    if after not in MOVES[before]:
        raise UnlawfulMove(f"a {before} job cannot become {after}")


def new_id(random: Random, now: int) -> str:
    """A fresh id of a job or a record: 28 hex digits, the millisecond first. Ids made at about the same time are
    close together in an index."""
    return f"{now // 1000:011x}{random.getrandbits(68):017x}"


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A request that no store has accepted yet. Times may be relative: the store's clock decides what they mean."""

    id: str
    task: str
    payload: bytes
    queue: str = "default"
    priority: int = 0
    key: str | None = None  # the user's own: at most one job holds it
    key_for: int = 0  # the key also holds for this long after creation (microseconds)
    slot: str | None = None  # the schedule whose overlap slot it occupies: at most one live job does
    run_at: int | None = None  # not before this instant …
    delay: int = 0  # … nor before this long from now
    schedule_id: str | None = None
    fire_at: int | None = None  # the occurrence's nominal time
    after_at: int | None = None  # the schedule's `fired_through` before this job
    generation: int = 0  # of the schedule's timing when this was made
    made_by: str | None = None  # cron, calendar, every, once, catchup, manual or start; None: enqueued by code
    waits_for: str | None = None  # held until that job ends
    ahead: str | None = None  # created before it is due: the key that it asks for then, or "" for none
    reason: str = ENQUEUED

    def __repr__(self) -> str:
        return without(self, "payload")


class Job(Struct, frozen=True, kw_only=True, gc=False):
    """A job as a store keeps it."""

    id: str
    seq: int  # rises with every job of the store: older first
    task: str
    payload: bytes
    state: State
    queue: str
    priority: int
    created_at: int
    run_at: int
    key: str | None = None
    key_until: int = 0
    schedule_id: str | None = None
    fire_at: int | None = None
    after_at: int | None = None
    generation: int = 0
    made_by: str | None = None
    waits_for: str | None = None
    queued_at: int | None = None  # when a scheduled or held job became ready
    started_at: int | None = None
    finished_at: int | None = None
    attempts: int = 0  # that ended, however they ended
    failures: int = 0  # of them, those that spent a retry
    deaths: int = 0  # of workers that held it
    lease_no: int = 0  # rises at every claim and fences every write
    holder: str | None = None
    lease_until: int | None = None
    cancel_reason: str | None = None  # set when a cancellation was requested
    error: str | None = None  # of the last attempt that failed
    result: bytes | None = None
    past: bytes = b""  # packed moves of earlier attempts
    progress: str | None = None  # the progress that the running attempt reports: "3/10 note"
    slot: str | None = None
    ahead: str | None = None

    def __repr__(self) -> str:
        return without(self, "payload", "result")

    @property
    def is_live(self) -> bool:
        return not self.state.is_final


def holds_key(state: State, key_until: int, now: int) -> bool:
    """Whether a job that has a key still holds it: while it is live, and until the key's period is over."""
    return not state.is_final or key_until > now


def accept(new: NewJob, now: int, seq: int = 0, *, must_wait: bool = True) -> Job:
    """The job that a store makes of a request at `now`: held, scheduled for later, or queued.

    `must_wait` is False if the job that it waits for has ended already: then it does not wait.
    """
    run_at = max(new.run_at or now, now + new.delay)
    is_ahead = new.ahead is not None
    is_held = new.waits_for is not None and must_wait
    state = State.HELD if is_held else State.SCHEDULED if is_ahead or run_at > now else State.QUEUED
    return Job(
        id=new.id,
        seq=seq,
        task=new.task,
        payload=new.payload,
        state=state,
        queue=new.queue,
        priority=new.priority,
        created_at=now,
        run_at=run_at,
        key=new.key,
        key_until=_key_until(new, run_at if is_ahead else now),
        schedule_id=new.schedule_id,
        fire_at=new.fire_at,
        after_at=new.after_at,
        generation=new.generation,
        made_by=new.made_by,
        waits_for=new.waits_for if is_held else None,
        past=_first_move(state, now, new, run_at),
        slot=new.slot,
        ahead=new.ahead,
    )


def _key_until(new: NewJob, since: int) -> int:
    """Until when its key holds in any case; a period without a key has no effect."""
    return since + new.key_for if new.key_for and (new.key or new.ahead) else 0


OWN_FIELDS = ("id", "task", "payload", "queue", "priority")  # the fields in which requests on the fast path differ


def can_use_fast_path(new: NewJob) -> bool:
    """Whether a request sets no more than OWN_FIELDS: such requests, accepted at one instant, differ in those alone."""
    said = (new.key, new.run_at, new.delay, new.schedule_id, new.fire_at, new.made_by, new.waits_for, new.reason)
    if said != _NOTHING_MORE or new.key_for or new.after_at is not None or new.generation:
        return False
    return new.slot is None and new.ahead is None


_NOTHING_MORE = (None, None, 0, None, None, None, None, "enqueued")


def _first_move(state: State, now: int, new: NewJob, run_at: int) -> bytes:
    """The first entry of a history, packed. A job that was simply enqueued has it implied, so that the common case
    stores none. If a delay was asked for, and not an instant, the entry has its seconds."""
    span = {"delay": new.delay / SECOND} if new.delay and run_at == now + new.delay else {}
    match state:
        case State.SCHEDULED:
            move = scheduled_move(now, run_at, new.reason, "delay")
            return pack_moves([move._replace(data={**(move.data or {}), **span})])
        case State.HELD:
            return pack_moves([Move(state, now, new.reason, {"waits_for": new.waits_for, **span})])
        case _:
            return b"" if new.reason == ENQUEUED else pack_moves([Move(state, now, new.reason)])


class Move(NamedTuple):
    """One entry of a history."""

    state: State
    at: int
    reason: str
    data: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(list[Move])


def pack_moves(moves: Iterable[Move]) -> bytes:
    return msgspec.json.encode(list(moves))


def unpack_moves(packed: bytes) -> list[Move]:
    return _decoder.decode(packed) if packed else []


def scheduled_move(at: int, run_at: int, reason: str, cause: str, *, error: str | None = None) -> Move:
    """The entry of a job that waits for an instant. Its cause is one word of a few, for programs: delay, retry,
    snooze, unknown task, released."""
    data = {"enqueue_at": iso_text(run_at), "cause": cause}
    return Move(State.SCHEDULED, at, reason, data if error is None else {**data, "error": error})


# Its history.


def history_of(job: Job) -> list[Move]:
    """Every entry, oldest first, each with its data."""
    return [move if move.data is not None else move._replace(data=_data_of(job, move.state)) for move in _moves_of(job)]


def ready_at(job: Job) -> int | None:
    """When the job became ready: since then it can be claimed, or could be until its last attempt began.

    If a worker had it before, that is when it became ready last. None while it is scheduled or held, and if it was
    cancelled as such.
    """
    last = next((move for move in reversed(_moves_of(job)) if move.state.is_waiting), None)
    return max(job.run_at, last.at) if last is not None and last.state is State.QUEUED else None


def folded(job: Job, *moves: Move) -> bytes:
    """The packed past once the current attempt has ended and these entries follow."""
    return pack_moves(_in_order([*_moves_of(job), *moves]))


def _moves_of(job: Job) -> list[Move]:
    closed = closed_moves(job)
    return _in_order([*closed, *_open_moves(job, closed[-1].state)])


def _data_of(job: Job, state: State) -> dict[str, Any]:
    """The data of an entry that was packed without data."""
    return {"queue": job.queue, "priority": job.priority} if state is State.QUEUED else {}


def closed_moves(job: Job) -> list[Move]:
    """The entries of earlier attempts. The first entry of a job that was simply enqueued is implied.

    A past that cannot be read is one entry that says so: the job can still be shown, run and settled.
    """
    try:
        return unpack_moves(job.past) or [Move(State.QUEUED, job.created_at, ENQUEUED)]
    except msgspec.MsgspecError as err:
        return [Move(State.QUEUED, job.created_at, reason_text("unreadable", error=err))]


def _in_order(moves: list[Move]) -> list[Move]:
    """The entries, none earlier than the one before it. Each step reads the clock when it begins: a step that
    promotes a job may begin after, and end before, the step that claims it."""
    ordered = moves[:1]
    for move in moves[1:]:
        at = max(move.at, ordered[-1].at)
        ordered.append(move if at == move.at else move._replace(at=at))
    return ordered


def _open_moves(job: Job, before: State) -> Iterable[Move]:
    """The entries that the current attempt's fields stand for."""
    if job.queued_at is not None:
        yield Move(State.QUEUED, job.queued_at, REASONS["released" if before is State.HELD else "due"])
    if job.started_at is not None:
        yield Move(State.RUNNING, job.started_at, REASONS["claimed"], {"worker": job.holder, "lease": job.lease_no})
    if job.state.is_final and job.finished_at is not None:
        yield Move(job.state, job.finished_at, _final_reason(job), _final_data(job, job.finished_at))


def _final_reason(job: Job) -> str:
    match job.state:
        case State.SUCCEEDED:
            late = job.cancel_reason
            return reason_text("returned_too_late", reason=late) if late else REASONS["returned"]
        case State.CANCELLED:
            return job.cancel_reason or REASONS["cancelled"]
        case _:
            return (job.error or "failed").partition("\n")[0]


def _final_data(job: Job, finished_at: int) -> dict[str, Any]:
    data: dict[str, Any] = {"attempts": job.attempts}
    if job.started_at is not None:
        data["seconds"] = max(0, finished_at - job.started_at) / SECOND
    return data if job.error is None else {**data, "error": job.error}
