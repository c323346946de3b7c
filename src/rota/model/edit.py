"""Edits of schedules: registering, pausing, resuming, enabling, removing: a whole new value and what goes with it.

The store applies an edit only where the schedule still has the version that it was decided on, and in one step with
the jobs that it revokes, makes or records as skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadTrigger, Refused
from rota.model.firing import Skip, next_slot, run_now, run_since_start, skip_range
from rota.model.job import NewJob
from rota.model.micros import datetime_of, micros_of
from rota.model.schedule import Origin, Pause, Schedule, ScheduleSpec

if TYPE_CHECKING:
    from collections.abc import Callable


class Edit(Struct, frozen=True, kw_only=True):
    """One change of one schedule. It holds for the schedule made at after.created_at, not for a later namesake."""

    after: Schedule  # what it becomes; its version is one more than expected
    expect_version: int  # 0: there must be none yet
    revoke: str | None = None  # why its waiting jobs are cancelled with it
    skips: list[Skip] = []
    jobs: list[NewJob] = []
    is_removal: bool = False

    @property
    def id(self) -> str:
        return self.after.id

    def holds_for(self, version: int | None, created_at: int | None) -> bool:
        """Whether the schedule (None: there is none) still is the one that this was decided on."""
        if version is None:
            return self.expect_version == 0
        return (version, created_at) == (self.expect_version, self.after.created_at)


def register(
    existing: Schedule | None,
    schedule_id: str,
    spec: ScheduleSpec,
    origin: Origin,
    now: int,
    new_id: Callable[[], str],
) -> Edit | None:
    """Add a schedule, or change it where its author changed what it says. None where nothing changed."""
    if existing is None:
        return _create(schedule_id, spec, origin, now, new_id)
    if (existing.origin.kind, existing.origin.app) != (origin.kind, origin.app):
        raise Refused(
            f"schedule '{schedule_id}' is defined by {describe_origin(existing.origin)}, so "
            f"{describe_origin(origin)} cannot change it; edit it there, or choose another id"
        )
    if _is_older(origin.version, existing.origin.version):
        return None
    if existing.origin.is_retired:
        return _restore(existing, spec, origin, now)
    if existing.spec == spec:
        is_newer = _is_older(existing.origin.version, origin.version)  # remembered, so that no older one comes after it
        return _edit(existing, existing, now, origin=origin) if is_newer else None
    edit = _reword(existing, spec, now) if existing.spec.timing == spec.timing else _retime(existing, spec, now)
    return msgspec.structs.replace(edit, after=msgspec.structs.replace(edit.after, origin=origin))


def pause(schedule: Schedule, now: int, *, reason: str, by: str, until: int | None) -> Edit:
    """Stop firing until somebody resumes it, or until an instant."""
    held = Pause(now, reason, by, until)
    return _edit(schedule, schedule, now, revoke=held.words, pause=held)


def resume(schedule: Schedule, now: int) -> Edit | None:
    """Go on from now; what fell into the pause is recorded as skipped."""
    if schedule.pause is None:
        return None
    until = schedule.pause.until
    return _go_on(schedule, now, schedule.pause.words, until=now if until is None else min(now, until - 1), pause=None)


def enable(schedule: Schedule, now: int) -> Edit | None:
    if schedule.is_enabled:
        return None
    if schedule.origin.is_retired:
        raise Refused(
            f"schedule '{schedule.id}' is retired: {describe_origin(schedule.origin)} no longer has it; declare it "
            "again there, or remove it"
        )
    return _go_on(schedule, now, "disabled", is_enabled=True)


def disable(schedule: Schedule, now: int) -> Edit | None:
    if not schedule.is_enabled:
        return None
    return _edit(schedule, schedule, now, revoke="schedule disabled", is_enabled=False)


def remove(schedule: Schedule, now: int) -> Edit:
    removal = _edit(schedule, schedule, now, revoke="schedule removed", is_enabled=False)
    return msgspec.structs.replace(removal, is_removal=True)


def retire(schedule: Schedule, origin: Origin, now: int) -> Edit | None:
    """Its origin no longer has it: it stops, and its record and its past stay. None where it did already."""
    if schedule.origin.is_retired or _is_older(origin.version, schedule.origin.version):
        return None
    retired = msgspec.structs.replace(origin, is_retired=True)
    return _edit(schedule, schedule, now, revoke="schedule retired", is_enabled=False, origin=retired)


def trigger_now(schedule: Schedule, now: int, job_id: str, by: str = "") -> Edit:
    """One run at once, whatever the schedule's times, pauses and live jobs."""
    reason = f"run now by {by}" if by else "run now"
    edit = _edit(schedule, schedule, now)
    return msgspec.structs.replace(edit, jobs=[run_now(schedule, now, job_id, reason=reason)])


def park(schedule: Schedule, now: int, problem: str) -> Edit:
    """Set a schedule aside that cannot be evaluated; its record says why, and the others go on."""
    return _edit(schedule, schedule, now, problem=problem)


def describe_origin(origin: Origin) -> str:
    where = f" of app '{origin.app}'" if origin.app else ""
    return {"code": "the code", "file": "a file"}.get(origin.kind, "the API") + where


def _create(schedule_id: str, spec: ScheduleSpec, origin: Origin, now: int, new_id: Callable[[], str]) -> Edit:
    """A new schedule is due at its first time after now; only a start earlier today has begun, and runs at once."""
    fresh = Schedule(
        id=schedule_id,
        spec=spec,
        origin=origin,
        created_at=now,
        updated_at=now,
        is_enabled=spec.enabled,
        fired_through=now,
    )
    begun = run_since_start(fresh, now, new_id) if spec.enabled else None
    created = msgspec.structs.replace(fresh, run_count=0 if begun is None else 1)
    created = msgspec.structs.replace(created, next_at=next_slot(created, now))
    starts = spec.run_on_start and spec.enabled
    jobs = [run_now(created, now, new_id(), made_by="start", reason="run on start")] if starts else []
    return Edit(after=created, expect_version=0, jobs=[*jobs, begun] if begun else jobs)


def _retime(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit:
    """New times hold from now on: nothing that lies behind is replayed, and nothing made for the old times runs."""
    skips = _skips_of(existing, now, _why_silent(existing) or "schedule re-timed")
    retimed = msgspec.structs.replace(
        existing,
        spec=spec,
        is_enabled=existing.is_enabled if existing.spec.enabled == spec.enabled else spec.enabled,
        generation=existing.generation + 1,
        fired_through=max(existing.fired_through, now),
        problem=None,
    )
    done = _done_in(existing, retimed, now)
    retimed = msgspec.structs.replace(retimed, fired_through=max(retimed.fired_through, done))
    next_at = next_slot(retimed, retimed.fired_through)
    edit = _edit(retimed, existing, now, revoke="schedule re-timed", next_at=next_at)
    return msgspec.structs.replace(edit, skips=skips)


def _done_in(existing: Schedule, retimed: Schedule, now: int) -> int:
    """Where only the zone changed: until when the new zone's clock shows local times that have had their run."""
    if existing.problem or existing.spec.tz == retimed.spec.tz:
        return 0
    before, after = existing.trigger, retimed.trigger
    last = before.previous_before(datetime_of(existing.fired_through + 1))
    is_same_rule = str(before.rezoned(retimed.spec.tz)) == str(after)
    if last is None or not is_same_rule or micros_of(last) <= existing.created_at:
        return 0
    guarded = before.rezoned(retimed.spec.tz, done_date=before.wall_time_of(last))
    first = guarded.next_after(datetime_of(now))
    return 0 if first is None or first == after.next_after(datetime_of(now)) else micros_of(first) - 1


def _why_silent(schedule: Schedule) -> str:
    """Why it does not fire, in the ledger's words; empty where it does."""
    if schedule.pause is not None:
        return schedule.pause.words
    if schedule.origin.is_retired:
        return "retired"
    return "" if schedule.is_enabled else "disabled"


def _restore(existing: Schedule, spec: ScheduleSpec, origin: Origin, now: int) -> Edit:
    """Declared again after it was retired: it goes on from now as if it were new, with its past."""
    retimed = _retime(existing, spec, now)
    after = msgspec.structs.replace(retimed.after, origin=origin, is_enabled=spec.enabled)
    return msgspec.structs.replace(retimed, after=after)


def _skips_of(existing: Schedule, now: int, why: str) -> list[Skip]:
    """What was due and will not be fired any more; a rule that cannot be evaluated has nothing to tell."""
    try:
        return [] if existing.problem else skip_range(existing, now, "skipped", why)
    except BadTrigger:
        return []


def _go_on(schedule: Schedule, now: int, why: str, *, until: int | None = None, **fields: Any) -> Edit:
    """Fire again; what fell into the silence, up to now or to its announced end, is recorded as skipped."""
    end = now if until is None else until
    skips = skip_range(schedule, end, "skipped", why)
    ahead = msgspec.structs.replace(schedule, fired_through=max(schedule.fired_through, end))
    edit = _edit(ahead, schedule, now, next_at=next_slot(ahead, ahead.fired_through), **fields)
    return msgspec.structs.replace(edit, skips=skips)


def _reword(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit:
    """The same times. The author's word on `enabled` counts when it changes; between deploys the operators' does."""
    is_said_anew = existing.spec.enabled != spec.enabled
    if not is_said_anew or existing.is_enabled == spec.enabled:
        return _edit(existing, existing, now, spec=spec, problem=None)
    if spec.enabled:
        return _go_on(existing, now, "disabled", is_enabled=True, spec=spec, problem=None)
    return _edit(existing, existing, now, revoke="schedule disabled", is_enabled=False, spec=spec, problem=None)


def _is_older(version: str, than: str) -> bool:
    """Whether dotted numbers say so; anything else has no order."""
    try:
        return [int(part) for part in version.split(".")] < [int(part) for part in than.split(".")]
    except ValueError:
        return False


def _edit(changed: Schedule, before: Schedule, now: int, *, revoke: str | None = None, **fields: Any) -> Edit:
    after = msgspec.structs.replace(changed, version=before.version + 1, updated_at=now, **fields)
    return Edit(after=after, expect_version=before.version, revoke=revoke)
