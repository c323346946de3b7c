"""Repairs the instants in a store whose clock stood ahead, once the clock is right again.

A clock that stands an hour ahead advances each schedule by that hour. Once it is right, nothing would fire for an hour.
The repair moves the schedule back. Jobs that ran under the wrong clock did run: their times stay taken, and no
occurrence happens twice. Only times that were skipped because the clock passed over them are open again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.audit_record import Author, audit_record_of, subject_of
from rota.model.jobs.job import Move, State, closed_moves, pack_moves, scheduled_move
from rota.model.jobs.settle import Change
from rota.model.micros import SECOND
from rota.model.reasons import reason_text
from rota.model.schedules.edit import Edit
from rota.model.schedules.slots import MISSED, NOT_CLAIMED, SILENT, next_slot, with_ahead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Past, Schedule

    Span = tuple[int, int]  # after < t <= through

TOLERANCE = 2 * SECOND  # clocks of replicas differ, and NTP moves them, by less than this
MOST_SPANS = 100  # that one schedule keeps; beyond them, the time between two spans counts as taken, too
_WAITING = ("scheduled", "held", "cancelled")  # outcomes that an occurrence may have before its time


def is_ahead_of_clock(schedule: Schedule, now: int) -> bool:
    """Whether a schedule may have been advanced, or made, by a clock that stood ahead, or whether jobs that it
    created before they were due may have been decided by one. Its ledger decides. A silence that began then has not
    begun by the clock."""
    began = [at for at, _ in schedule.silences]
    return not schedule.problem and max([schedule.made_through, *began]) > now + TOLERANCE


def repair_schedule(
    schedule: Schedule, entries: Sequence[Occurrence], now: int, *, is_whole: bool = True
) -> Edit | None:
    """Move a schedule back to now. `entries` are its ledger entries after now, oldest first; not whole: there are more.

    None if nothing was done under a wrong clock: a change of zone also lets a schedule wait for a later time.
    """
    silenced = _silent_by(schedule, now)
    edit = _repair_times(silenced, entries, now, is_whole=is_whole)
    if edit is not None or silenced == schedule:
        return edit
    after = msgspec.structs.replace(silenced, version=schedule.version + 1, updated_at=now)
    return Edit(after=after, expect_version=schedule.version)


def _silent_by(schedule: Schedule, now: int) -> Schedule:
    """The schedule whose silences began now at the latest. Their announced ends are instants, and stay."""
    late = {
        name: msgspec.structs.replace(pause, at=now)
        for name in ("pause", "tenant_pause")
        if (pause := getattr(schedule, name)) is not None and pause.at > now
    }
    off_at = None if schedule.ahead is None else schedule.ahead.off_at
    moved = with_ahead(schedule, off_at=now) if off_at is not None and off_at > now else schedule
    return msgspec.structs.replace(moved, **late) if late else moved


def _repair_times(schedule: Schedule, entries: Sequence[Occurrence], now: int, *, is_whole: bool) -> Edit | None:
    was_edited = schedule.updated_at > now + TOLERANCE
    if not is_ahead_of_clock(schedule, now) or not (was_edited or _has_decided(entries, now)):
        return None
    is_made_ahead = schedule.ahead is not None and schedule.ahead.through > schedule.fired_through
    was_fired = schedule.fired_through > now + TOLERANCE
    reopened = [entry for entry in entries if _is_open(entry, was_edited=was_edited)][:MOST_SPANS]
    if is_made_ahead and any(detour.slots for detour in schedule.detours):
        reopened = []  # the run that a change of zone keeps stays where it is
    if not (was_fired or reopened):
        return None
    end = schedule.made_through if reopened else schedule.fired_through
    rest = [entry for entry in entries if entry not in reopened and entry.earliest_at <= end]
    spans = [(max(entry.earliest_at - 1, now), entry.through_at) for entry in rest]
    if not is_whole and entries and entries[-1].through_at < end:
        spans.append((entries[-1].through_at, end))
    before = _without(schedule.taken, reopened)  # an earlier repair may have kept a job that was skipped since
    taken = _joined(schedule, sorted([*spans, *before]))
    return _moved_back(schedule, reopened, taken, now)


def with_repair_audit(edit: Edit, before: Schedule, author: Author) -> Edit:
    """The edit with an audit record of how far it moves the schedule back."""
    was = {"fired_through": before.fired_through, "created_at": before.created_at}
    became = {"fired_through": edit.after.fired_through, "created_at": edit.after.created_at}
    if [at for at, _ in before.silences] != [at for at, _ in edit.after.silences]:
        was |= {"silent_since": min(at for at, _ in before.silences)}
        became |= {"silent_since": min(at for at, _ in edit.after.silences)}
    spans = {"taken": [list(span) for span in edit.after.taken]} if edit.after.taken else {}
    audit = audit_record_of(author, subject_of("schedule", edit.id), was, {**became, **spans}, edit.after.updated_at)
    return msgspec.structs.replace(edit, audit=audit)


def repair_job(job: Job, now: int) -> Change | None:
    """Let a job that waits since a time that has not come wait as long from now on. None if it need not be moved.

    That holds for delays: of a new job, a retry, a snooze. A job that has an instant waits for it, and a job created
    before it is due waits for its time. The job of an occurrence that was due by the wrong clock waits for no time: it
    runs in its turn; otherwise its schedule would wait behind it.
    """
    moves = closed_moves(job)
    since = moves[-1]
    is_waiting = job.state in {State.SCHEDULED, State.HELD}
    if not is_waiting or since.at <= now + TOLERANCE or not _has_delay(job, since):
        return None
    run_at = now + max(0, job.run_at - since.at)
    past = [move._replace(at=min(move.at, now)) for move in (*moves[:-1], _moved(since, run_at))]
    return _waiting_until(job, run_at, past) if run_at < job.run_at else None


def _moved(move: Move, run_at: int) -> Move:
    """The history entry of a job that waits, for another time."""
    data = move.data or {}
    if "enqueue_at" in data:
        data = {**data, **(scheduled_move(move.at, run_at, move.reason, "delay").data or {}), "cause": data["cause"]}
    return move._replace(reason=reason_text("clock_moved", reason=move.reason), data=data or None)


def is_lease_ahead(job: Job, latest: int) -> bool:
    """Whether a lease was given by a clock that stood ahead, and showed this time at the latest."""
    return job.state is State.RUNNING and job.lease_until is not None and job.lease_until > latest


def _has_delay(job: Job, move: Move) -> bool:
    if job.attempts or job.lease_no:
        return True
    if job.fire_at is not None:
        return job.ahead is None or job.run_at <= move.at
    return bool(move.data and move.data.get("delay"))


def _waiting_until(job: Job, run_at: int, past: list[Move]) -> Change:
    """The job as it is, for another time."""
    return Change(
        job=job,
        state=job.state,
        run_at=run_at,
        attempts=job.attempts,
        failures=job.failures,
        deaths=job.deaths,
        past=pack_moves(past),
        key=job.key,
        slot=job.slot,
        queued_at=job.queued_at,
        started_at=job.started_at,
        cancel_reason=job.cancel_reason,
        error=job.error,
    )


def _has_decided(entries: Sequence[Occurrence], now: int) -> bool:
    """Whether something was decided about times that have not come."""
    return any(entry.through_at > now + TOLERANCE and entry.outcome not in _WAITING for entry in entries)


def _is_open(entry: Occurrence, *, was_edited: bool) -> bool:
    """Whether the clock's error alone is why an occurrence has no run.

    A pause that ended by itself was meant to last until its end. One that a person ended under the wrong clock was not.
    """
    return entry.reason in {MISSED, NOT_CLAIMED} or (
        was_edited and entry.outcome == "skipped" and entry.reason.startswith(SILENT)
    )


def _moved_back(schedule: Schedule, reopened: Sequence[Occurrence], taken: tuple[Span, ...], now: int) -> Edit:
    since = min([now, schedule.fired_through, *(entry.after_at for entry in reopened)])  # a range may begin before now
    after = with_ahead(schedule, taken=taken, past=_past_by(schedule, since), **({"through": 0} if reopened else {}))
    after = msgspec.structs.replace(
        after,
        version=schedule.version + 1,
        created_at=min(schedule.created_at, now),
        updated_at=now,
        fired_through=since,
    )
    after = msgspec.structs.replace(after, next_at=next_slot(after, after.made_through))
    return Edit(
        after=after,
        expect_version=schedule.version,
        expect_created_at=schedule.created_at,
        reopens=[entry.through_at for entry in reopened],
    )


def _past_by(schedule: Schedule, since: int) -> Past | None:
    """Its past by the right clock: times that are decided from now on are read by the schedule's own clock again."""
    past = None if schedule.ahead is None else schedule.ahead.past
    return past and msgspec.structs.replace(past, start=min(past.start, since), since=min(past.since, since))


def _without(spans: Sequence[Span], reopened: Sequence[Occurrence]) -> list[Span]:
    """The spans that are left if these occurrences are open again."""
    left = list(spans)
    for entry in reopened:
        low, high = entry.earliest_at - 1, entry.through_at
        parts = [part for after, through in left for part in ((after, min(through, low)), (max(after, high), through))]
        left = [(after, through) for after, through in parts if after < through]
    return left


def _joined(schedule: Schedule, spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans in order, as few as possible: those with no time of the schedule between them are one."""
    joined: list[Span] = []
    for low, high in spans:
        if joined and (len(joined) == MOST_SPANS or not _has_time_in(schedule, joined[-1][1], low)):
            first, last = joined.pop()
            low, high = first, max(last, high)  # noqa: PLW2901 - the two are one now
        joined.append((low, high))
    return tuple(joined)


def _has_time_in(schedule: Schedule, after: int, through: int) -> bool:
    return through > after and schedule.trigger.count_seconds(after // SECOND, through // SECOND) > 0
