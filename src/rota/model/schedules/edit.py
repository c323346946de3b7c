"""Decides edits of schedules: registering, pausing, resuming, enabling, removing. An edit is a whole new value and its
effects.

The store applies an edit only if the schedule still has the version that it was decided on, and in one step with the
jobs that it revokes, makes or records as skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadTrigger, Refused
from rota.model.audit_record import AuditRecord, Author, audit_record_of, facts_of, subject_of, without_runs
from rota.model.jobs.job import Job, NewJob
from rota.model.reasons import reason_text
from rota.model.schedules.firing import as_made, run_now, run_since_start
from rota.model.schedules.origin import belongs_elsewhere, check_origin, is_older, may_hand_over, origin_sentence
from rota.model.schedules.retiming import elsewhere, from_now, is_same_rule, kept_next, moved, with_begun
from rota.model.schedules.schedule import (
    PAUSED,
    LastRun,
    Origin,
    Pause,
    Schedule,
    ScheduleSpec,
    checked,
    is_over,
    paused_since,
    silent_from,
)
from rota.model.schedules.slots import (
    DISABLED,
    MISSED,
    RETIMED,
    RETIRED,
    Skip,
    count_open,
    next_slot,
    settled_through,
    silenced,
    skip_range,
    trimmed,
    with_ahead,
)
from rota.model.sync import start_sync
from rota.sentences import sentence
from rota.triggers.rezoned import WallTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Container


class Edit(Struct, frozen=True, kw_only=True):
    """One change of one schedule. It holds for the schedule made at after.created_at, not for a later namesake."""

    after: Schedule  # the new value; its version is one more than expected
    expect_version: int  # 0: there must be none yet
    expect_created_at: int | None = None  # if the edit itself changes when it was made
    revoke: str | None = None  # why its waiting jobs are cancelled with it
    delete_after: int | None = None  # waiting jobs of later occurrences are deleted, and leave no record
    reopens: list[int] = []  # skipped ranges to remove from the ledger, by their last time: they are decided again
    skips: list[Skip] = []
    jobs: list[NewJob] = []
    is_removal: bool = False
    audit: AuditRecord | None = None  # the author, and what changed; stored in the same step

    @property
    def id(self) -> str:
        return self.after.id

    @property
    def made_at(self) -> int:
        """When the schedule was made that it is decided on."""
        return self.after.created_at if self.expect_created_at is None else self.expect_created_at

    def holds_for(self, version: int | None, created_at: int | None) -> bool:
        """Whether the schedule (None: there is none) still is the one that this was decided on."""
        if version is None:
            return self.expect_version == 0
        return (version, created_at) == (self.expect_version, self.made_at)

    def deletes(self, job: Job) -> bool:
        """Whether a waiting job that it revokes was created before it was due. Such a job leaves no record, for its
        time is to come."""
        return is_deleted(job, self.delete_after)


def is_deleted(job: Job, delete_after: int | None) -> bool:
    """Whether a job was made for a time after this one; None: nothing is deleted."""
    return delete_after is not None and job.fire_at is not None and job.fire_at > delete_after


def register(
    existing: Schedule | None,
    schedule_id: str,
    spec: ScheduleSpec,
    origin: Origin,
    now: int,
    new_id: Callable[[], str],
) -> Edit | None:
    """Add a schedule, or apply the changes that its author made. None if nothing changed."""
    if existing is None:
        return _create(schedule_id, spec, origin, now, new_id)
    existing = checked(existing)
    check_origin(existing, origin, "change", "edit it there, or choose another id")
    if is_older(origin.version, existing.origin.version):
        return None
    has_moved = existing.origin.name != origin.name
    if has_moved and not may_hand_over(existing.origin, origin):
        todo = "edit it there, or choose another id, or move it with a higher version of the app"
        raise belongs_elsewhere(existing, origin, "change", todo)
    if existing.origin.is_retired:
        return _restore(existing, spec, origin, now)
    if existing.spec == spec:
        is_newer = is_older(existing.origin.version, origin.version)  # remembered, so that no older one comes after it
        return _by(_edit(existing, existing, now), origin) if is_newer or has_moved else None
    edit = _reword(existing, spec, now) if existing.spec.timing == spec.timing else _rezone(existing, spec, now)
    return _by(edit, origin)


def with_audit(edit: Edit, before: Schedule | None, author: Author) -> Edit:
    """The edit with an audit record of who made it and what it changes."""
    after = {} if edit.is_removal else facts_of(edit.after)
    runs = {"runs": [job.id for job in edit.jobs]} if edit.jobs else {}
    audit = audit_record_of(
        author, subject_of("schedule", edit.id), facts_of(before), {**after, **runs}, edit.after.updated_at
    )
    return msgspec.structs.replace(edit, audit=audit)


def pause(schedule: Schedule, now: int, *, reason: str, by: str, until: int | None) -> Edit:
    """Stop firing until it is resumed, or until an instant. One that is paused already has been so since then."""
    held = Pause(paused_since(schedule.pause, now), reason=reason, by=by, until=until)
    return _stop(schedule, now, held.words, pause=held)


def resume(schedule: Schedule, now: int) -> Edit | None:
    """Continue from now. Times within the pause are recorded as skipped."""
    if schedule.pause is None:
        return None
    return _lift(schedule, schedule.pause, now, pause=None)


def follow_pause(schedule: Schedule, tenant_pause: Pause | None, now: int) -> Edit | None:
    """Pause or resume it with its tenant, whatever its own pause says."""
    known = schedule.tenant_pause
    if tenant_pause is not None and known is not None and not is_over(known, now):
        began = min(known.at, tenant_pause.at)  # a repair after a clock that stood ahead may have moved it back
        tenant_pause = msgspec.structs.replace(tenant_pause, at=began)
    if known == tenant_pause:
        return None
    if tenant_pause is not None:
        return _stop(schedule, now, tenant_pause.words, tenant_pause=tenant_pause)
    return _lift(schedule, schedule.tenant_pause, now, tenant_pause=None)


def follow_spec(schedule: Schedule, spec: ScheduleSpec, now: int, *, keeps_next: bool) -> Edit | None:
    """Apply its tenant's settings of now. On a change of zone, the run that was announced may be kept."""
    if schedule.spec == spec:
        return None
    if schedule.spec.timing == spec.timing:
        return _reword(schedule, spec, now)
    return (_keep_next(schedule, spec, now) if keeps_next else None) or _rezone(schedule, spec, now)


def enable(schedule: Schedule, now: int) -> Edit | None:
    if schedule.is_enabled:
        return None
    if schedule.origin.is_retired:
        raise Refused(
            sentence(
                "refused.retired",
                "schedule '{schedule}' is retired: {origin} no longer has it; {way_back}",
                schedule=schedule.id,
                origin=origin_sentence(schedule.origin),
                way_back=schedule.origin.way_back,
            )
        )
    return _go_on(schedule, now, DISABLED, is_enabled=True)


def disable(schedule: Schedule, now: int) -> Edit | None:
    if not schedule.is_enabled:
        return None
    return _stop(schedule, now, reason_text("schedule_disabled"), is_enabled=False)


def remove(schedule: Schedule, now: int, origin: Origin | None = None) -> Edit:
    """Remove it in the name of an origin; None: of any origin. A retired schedule may be removed for any origin."""
    if origin is not None:
        check_removable(schedule, origin)
    removal = _edit(schedule, schedule, now, revoke=reason_text("schedule_removed"), is_enabled=False)
    return msgspec.structs.replace(removal, is_removal=True)


def check_removable(schedule: Schedule, origin: Origin) -> None:
    if not schedule.origin.is_retired:
        forced = f"`rota schedules remove {schedule.id} --force`"
        todo = f"remove it there, or disable it; if that app is gone for good: {forced}"
        check_origin(schedule, origin, "remove", todo)


def retire(schedule: Schedule, origin: Origin, now: int) -> Edit | None:
    """Its origin no longer has it: it stops, and its record and its past stay. None if it did already."""
    if schedule.origin.is_retired or is_older(origin.version, schedule.origin.version):
        return None
    retired = msgspec.structs.replace(origin, is_retired=True, zone=schedule.origin.zone)
    return _stop(schedule, now, reason_text("schedule_retired"), is_enabled=False, origin=retired)


def trigger_now(schedule: Schedule, now: int, job_id: str, by: str = "") -> Edit:
    """Start one run immediately, whatever the schedule's times, pauses and live jobs."""
    if schedule.spec.sync is not None:
        raise Refused(
            sentence(
                "refused.sync_schedule",
                "schedule '{schedule}' keeps a collection in sync, one task at a time: start that instead",
                schedule=schedule.id,
            )
        )
    reason = reason_text("run_now_by", by=by) if by else reason_text("run_now")
    return _with_run(_edit(schedule, schedule, now), run_now(schedule, now, job_id, reason=reason), now)


def start_edit(schedule: Schedule, now: int, fresh: str, by: str) -> Edit:
    """A collection's task, started by hand: it is created only if no start by schedule or by hand came first."""
    return _with_run(_edit(schedule, schedule, now), start_sync(schedule, fresh, by), now)


def _with_run(edit: Edit, job: NewJob, now: int) -> Edit:
    """The edit with a job that its trigger did not make: a run as any other, which max_runs does not count. Its key may
    still refuse it: see `schedule_after`."""
    known = edit.after.last
    last = msgspec.structs.replace(known, enqueued_at=now, job_id=job.id, by_hand=known.by_hand + 1)
    return msgspec.structs.replace(edit, after=msgspec.structs.replace(edit.after, last=last), jobs=[*edit.jobs, job])


def schedule_after(edit: Edit, current: LastRun | None, made: Container[str]) -> Schedule:
    """The schedule that an edit leaves, when these of its jobs were made: a job that its slot or its key refused is
    no run. The values that workers wrote meanwhile stay (`current`; None: the schedule is new)."""
    if not edit.jobs:
        return edit.after if current is None else msgspec.structs.replace(edit.after, last=current)
    known = LastRun() if current is None else current
    said = edit.after.last
    last = msgspec.structs.replace(
        known,
        enqueued_at=said.enqueued_at,
        job_id=said.job_id or known.job_id,
        by_hand=said.by_hand,
        fired_for=known.fired_for if current is not None else said.fired_for,  # of a new schedule, its start may be one
    )
    return as_made(msgspec.structs.replace(edit.after, last=last), known, edit.jobs, made)


def audit_after(edit: Edit, made: Container[str]) -> AuditRecord | None:
    """The audit record of an edit, when these of its jobs were made: a run that was refused has none."""
    missed = [job.id for job in edit.jobs if job.id not in made]
    return without_runs(edit.audit, missed) if edit.audit is not None and missed else edit.audit


def mark_broken(schedule: Schedule, now: int, problem: str) -> Edit:
    """Stop a schedule that cannot be evaluated. Its record says why. The other schedules are not affected."""
    return _edit(_without_fault(schedule), schedule, now, problem=problem)


def record_fault(schedule: Schedule, now: int, error: str, author: Author) -> Edit | None:
    """Record why the store failed at a firing, which is tried again. None if the schedule says so already."""
    if schedule.fault == error:
        return None
    audit = audit_record_of(author, subject_of("schedule", schedule.id), {}, {"error": error}, now)
    return msgspec.structs.replace(_edit(with_ahead(schedule, fault=error), schedule, now), audit=audit)


def _without_fault(schedule: Schedule) -> Schedule:
    return with_ahead(schedule, fault="") if schedule.fault else schedule


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
    if begun is not None:
        last = LastRun(enqueued_at=now, job_id=begun.id, fired_for=begun.fire_at)
        created = with_begun(msgspec.structs.replace(created, last=last))
    edit = Edit(after=created, expect_version=0, jobs=[begun] if begun else [])
    if not (spec.run_on_start and spec.enabled):
        return edit
    return _with_run(edit, run_now(created, now, new_id(), made_by="start", reason=reason_text("run_on_start")), now)


def _by(edit: Edit, origin: Origin) -> Edit:
    """An edit by its origin, which does not say where the schedule was made."""
    named = msgspec.structs.replace(origin, zone=edit.after.origin.zone)
    return msgspec.structs.replace(edit, after=msgspec.structs.replace(edit.after, origin=named))


def _retime(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit:
    """New times hold from now on: no time that is past is replayed, and no job for the old times runs."""
    standing = _unmade(existing, now)
    after = from_now(standing, _retimed(existing, standing, spec), now)
    return _with_times(after, existing, now, _skips_of(standing, now))


def _move(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit:
    """The same local times in another zone. One that has not run and lies behind there was missed: it is caught up."""
    standing, skips = _silent_so_far(_unmade(existing, now), now)
    after = moved(standing, _retimed(existing, standing, spec), now)
    missed = skip_range(standing, after.fired_through, "skipped", MISSED)  # more were missed than are kept
    return _with_times(after, existing, now, [*missed, *skips])


def _silent_so_far(schedule: Schedule, now: int) -> tuple[Schedule, list[Skip]]:
    """The schedule with the times that are silent so far decided, by the clock that it has had; and the skips of
    those. The silence continues."""
    why, through = _silent_through(schedule, now)
    return silenced(schedule, through, why) if why else (schedule, [])


def _silent_through(schedule: Schedule, now: int) -> tuple[str, int]:
    """Why it has not fired recently, in the ledger's words (empty if it could), and up to when that was so."""
    silence = schedule.silence
    if silence is not None and (silence.until is None or silence.until > now):
        return silence.words, now
    if not schedule.is_enabled:
        return RETIRED if schedule.origin.is_retired else DISABLED, now
    return ("", now) if silence is None or silence.until is None else (silence.words, silence.until - 1)


def _stop(schedule: Schedule, now: int, revoke: str, **fields: Any) -> Edit:
    """Stop firing. Times within an earlier silence are decided by that silence: the new stop holds from now on. A
    pause that is over, and that no scheduler has ended yet, is removed."""
    if schedule.problem:
        return _edit(schedule, schedule, now, revoke=revoke, **fields)
    after, skips = _silent_so_far(_unmade(schedule, now), now)
    over = {name: None for name in ("pause", "tenant_pause") if is_over(getattr(schedule, name), now)}
    times = {"next_at": next_slot(after, after.made_through)} if skips else {}
    edit = _edit(after, schedule, now, revoke=revoke, **{**times, **over, **fields})
    return msgspec.structs.replace(edit, skips=skips)


def _rezone(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit:
    """New times, which may be the old ones by another clock."""
    is_moved = not existing.problem and isinstance(existing.trigger, WallTrigger) and is_same_rule(existing, spec)
    return _move(existing, spec, now) if is_moved else _retime(existing, spec, now)


def _fires(schedule: Schedule) -> bool:
    return schedule.is_enabled and schedule.silence is None and not schedule.problem


def _with_times(retimed: Schedule, existing: Schedule, now: int, skips: list[Skip]) -> Edit:
    """The edit to new times."""
    next_at = next_slot(retimed, retimed.fired_through)
    edit = _edit(retimed, existing, now, revoke=RETIMED, next_at=next_at)
    return msgspec.structs.replace(edit, skips=skips)


def _retimed(existing: Schedule, left: Schedule, spec: ScheduleSpec) -> Schedule:
    return msgspec.structs.replace(
        elsewhere(_without_fault(left), spec),
        is_enabled=existing.is_enabled if existing.spec.enabled == spec.enabled else spec.enabled,
        generation=existing.generation + 1,
        problem=None,
    )


def _keep_next(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit | None:
    """A new zone that first lets the announced run happen at its old instant; None if none was announced."""
    if not _fires(existing):
        return None
    standing = _unmade(existing, now)
    after = kept_next(existing, standing, _retimed(existing, standing, spec), now)
    if after is None:
        return None
    skips = skip_range(standing, after.fired_through, "skipped", MISSED)  # more were missed than are kept
    return _with_times(after, existing, now, skips)


def _unmade(schedule: Schedule, now: int) -> Schedule:
    """The schedule without its jobs for times to come. The edit that takes this revokes them."""
    if schedule.problem:
        return with_ahead(schedule, through=0, detours=())
    if not schedule.has_jobs_ahead:
        return schedule if schedule.ahead is None else trimmed(with_ahead(schedule, through=0))
    settled = settled_through(schedule, now)
    number = count_open(schedule, settled, schedule.made_through)
    bare = msgspec.structs.replace(schedule, fired_through=settled, run_count=max(0, schedule.run_count - number))
    bare = trimmed(with_ahead(bare, through=0))
    return msgspec.structs.replace(bare, next_at=next_slot(bare, settled))


def _restore(existing: Schedule, spec: ScheduleSpec, origin: Origin, now: int) -> Edit:
    """A schedule that is declared again after it was retired: it continues from now like a new one, with its past."""
    retimed = _retime(existing, spec, now)
    enabled = with_ahead(msgspec.structs.replace(retimed.after, is_enabled=spec.enabled), off_at=None)
    return _by(msgspec.structs.replace(retimed, after=enabled), origin)


def _skips_of(existing: Schedule, now: int) -> list[Skip]:
    """The occurrences that were due and will not be fired any more. A rule that cannot be evaluated has none."""
    if existing.problem:
        return []
    try:
        settled, silent = _silent_so_far(existing, now)
        missed = skip_range(settled, now, "skipped", RETIMED)
        return sorted([*missed, *silent], key=lambda skip: skip.through_at)
    except BadTrigger:
        return []


def _lift(schedule: Schedule, lifted: Pause | None, now: int, **fields: Any) -> Edit:
    """Continue after a pause: up to its announced end, if that has come, and else up to now."""
    until = lifted.until if lifted is not None else None
    why = lifted.words if lifted is not None else PAUSED
    return _go_on(schedule, now, why, until=now if until is None else min(now, until - 1), **fields)


def _go_on(schedule: Schedule, now: int, why: str, *, until: int | None = None, **fields: Any) -> Edit:
    """Fire again. Times within the silence, up to now or to its announced end, are recorded as skipped. Times that
    were missed before the silence are still to be caught up."""
    if schedule.problem:
        return _edit(schedule, schedule, now, **fields)  # its times are not known until it is repaired
    after, skips = silenced(schedule, now if until is None else until, why)
    edit = _edit(after, schedule, now, next_at=next_slot(after, after.made_through), **fields)
    return msgspec.structs.replace(edit, skips=skips)


def _reword(existing: Schedule, spec: ScheduleSpec, now: int) -> Edit:
    """The same times. The author's value of `enabled` counts when it changes; between deploys the operators' does."""
    existing = _without_fault(existing)
    has_changed = existing.spec.enabled != spec.enabled
    if not has_changed or existing.is_enabled == spec.enabled:
        return _edit(existing, existing, now, spec=spec, problem=None)
    if spec.enabled:
        return _go_on(existing, now, DISABLED, is_enabled=True, spec=spec, problem=None)
    return _stop(existing, now, reason_text("schedule_disabled"), is_enabled=False, spec=spec, problem=None)


def _edit(changed: Schedule, before: Schedule, now: int, *, revoke: str | None = None, **fields: Any) -> Edit:
    standing = changed if revoke is None else _unmade(changed, now)
    after = msgspec.structs.replace(standing, version=before.version + 1, updated_at=now, **fields)
    if before.is_enabled != after.is_enabled:
        after = with_ahead(after, off_at=None if after.is_enabled else now)
    after = _with_quiet(after, silent_from(before, now))
    is_ahead = revoke is not None and (before.has_jobs_ahead or bool(before.taken))
    delete_after = max([now, *(through for _, through in before.taken)]) if is_ahead else None
    return Edit(after=after, expect_version=before.version, revoke=revoke, delete_after=delete_after)


def _with_quiet(schedule: Schedule, since: int | None) -> Schedule:
    """A schedule that has been silent since then, and still is, remembers it: the pause that began the silence may
    be lifted."""
    own = min((at for at, _ in schedule.silences), default=None)
    quiet_at = since if own is not None and since is not None and since < own else None
    known = None if schedule.ahead is None else schedule.ahead.quiet_at
    return schedule if quiet_at == known else with_ahead(schedule, quiet_at=quiet_at)
