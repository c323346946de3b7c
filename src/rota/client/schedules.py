"""Defines app.schedules: the verbs about schedules."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from rota.errors import DuplicateName, Refused, ScheduleNotFound, VersionConflict
from rota.inspector.changes import Change, list_changes
from rota.inspector.facts.schedule import OccurrenceFacts, occurrence_facts
from rota.inspector.facts.why import WhyFacts, why_facts
from rota.inspector.occurrences import coming_slots, local_start, why_at, why_no_more
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_view import ScheduleView
from rota.keywords import known_keywords_of_verbs
from rota.model.audit_record import Author, subject_of
from rota.model.micros import check_instant, optional_instant
from rota.model.names import check_schedule_id
from rota.model.option_names import FOR_VERBS
from rota.model.schedules import edit as edits
from rota.model.schedules.firing import jitter_of
from rota.model.schedules.never import check_new, check_pause_end, why_never
from rota.model.schedules.origin import is_older
from rota.model.schedules.schedule import Origin, Schedule, ScheduleSpec, checked
from rota.model.secrets.redaction import DEFAULT
from rota.model.tenant import born_paused, followed
from rota.operations.audit import whoami
from rota.operations.plan import apply_edits, plan_schedules
from rota.operations.preview import preview_times
from rota.operations.run_now import key_holder, start_task, was_made
from rota.operations.specs import ScheduleKeywords, make_spec
from rota.operations.tenant_changes import add_pending_change, check_tenants, settle_schedules
from rota.operations.through_middleware import put_through
from rota.sentences import sentence
from rota.store.contract import Page, ScheduleFilter, check_limit
from rota.tasks.job import Job
from rota.tasks.task import Request, TaskOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from rota.inspector.facts.preview import PreviewFacts
    from rota.model.entry import Entry
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.planning import Planned
    from rota.model.secrets.redaction import Redaction
    from rota.model.tenant import Tenant
    from rota.store.contract import Store
    from rota.tasks.job import JobReader
    from rota.tasks.middleware import Middleware
    from rota.triggers import Trigger

TRIES = 5
TOGETHER = 500  # schedules that are written in one call

log = logging.getLogger("rota.app")

Runs = list[datetime]

_PLANNED = {"add": "created", "re-time": "re-timed", "restore": "restored", "retire": "retired"}


@known_keywords_of_verbs("app.schedules", FOR_VERBS)
class Schedules:
    """app.schedules"""

    def __init__(
        self,
        store: Callable[[], Store],
        reader: JobReader,
        new_id: Callable[[], str],
        tz: str,
        redaction: Redaction = DEFAULT,
        middleware: Sequence[Middleware] = (),
        *,
        bring_declared: Callable[[], int],
    ) -> None:
        self._store = store
        self._reader = reader
        self._new_id = new_id
        self._tz = tz
        self._redaction = redaction
        self._middleware = middleware
        self._bring_declared = bring_declared

    def sync(self) -> int:
        """Update the store to the declarations of code and rota.yaml. Returns how many schedules and tenants changed.

        Unchanged schedules are not written. A schedule that an older version of this app declared, and this one does
        not, is retired. `app.start()` and `rota run` also do this.
        """
        return self._bring_declared()

    def put(
        self,
        schedule_id: str,
        request: Request,
        trigger: Trigger,
        *,
        by: str = "",
        expect_version: int | None = None,
        **options: Unpack[ScheduleKeywords],
    ) -> ScheduleView:
        """Add a schedule, or change it. Options are those of @app.schedule."""
        spec = make_spec(trigger, request, default_tz=self._tz, **options)
        name = check_schedule_id(schedule_id)
        self.register([(name, spec)], Origin(), by=by, expect_version=expect_version)
        return self.get(name)

    def put_many(
        self, items: Iterable[tuple[str, Request, Trigger]], *, by: str = "", **options: Unpack[ScheduleKeywords]
    ) -> int:
        """Add or change many schedules in few calls; returns how many changed."""
        specs = [
            (check_schedule_id(name), make_spec(trigger, request, default_tz=self._tz, **options))
            for name, request, trigger in items
        ]
        _check_distinct([name for name, _ in specs])
        batches = (specs[start : start + TOGETHER] for start in range(0, len(specs), TOGETHER))
        return sum(self.register(batch, Origin(), by=by) for batch in batches)

    def preview(
        self,
        trigger: Trigger,
        *,
        schedule_id: str | None = None,
        task: str | None = None,
        n: int = 10,
        **options: Unpack[ScheduleKeywords],
    ) -> PreviewFacts:
        """The times of a definition: a sentence, the next runs, and warnings. Nothing is written.

        With the id of a schedule, also its present times. With a task, or with that of the schedule, also whether its
        runs usually take longer than the time between two of them.
        """
        before = None if schedule_id is None else self._read(schedule_id)
        request = Request(task or ("" if before is None else before.spec.task), b"[]", TaskOptions())
        spec = make_spec(trigger, request, default_tz=self._tz, **options)
        return preview_times(self._store(), spec, before, check_limit(n), self._new_id)

    def register(
        self,
        specs: Sequence[tuple[str, ScheduleSpec]],
        origin: Origin,
        *,
        by: str = "",
        expect_version: int | None = None,
    ) -> int:
        """Add or change schedules so that the store has these; unchanged ones stay. Returns how many changed."""
        register = partial(self._register, origin=origin, by=by, expect_version=expect_version)
        return put_through(self._middleware, dict(specs), register)

    def _register(
        self, specs: Mapping[str, ScheduleSpec], *, origin: Origin, by: str, expect_version: int | None
    ) -> int:
        store = self._store()
        names = list(specs)
        pending: Entry | None = None
        for _ in range(TRIES):
            existing = {schedule.id: schedule for schedule in store.get_schedules(names)}
            _check_version(names, existing, expect_version)
            changes = self._registrations(specs, existing, origin, by)
            then_and_now = [*specs.values(), *(schedule.spec for schedule in existing.values())]
            if pending is None and changes and any(spec.tenant for spec in then_and_now):
                pending = add_pending_change(store, names, by or whoami(), self._new_id)
            if changes and store.edit_schedules(changes):
                continue
            if pending is not None:
                settle_schedules(store, pending, self._new_id)
            return len(changes)
        raise VersionConflict("the schedules kept changing while they were registered; try again")

    def retire_gone(self, declared: Container[str], origin: Origin, *, by: str = "") -> int:
        """Retire schedules that an older version of this origin declared and this one does not. Returns how many."""
        store = self._store()
        gone = [
            schedule
            for schedule in all_schedules(store, ScheduleFilter(origin=origin.name))
            if schedule.id not in declared and is_older(schedule.origin.version, origin.version)
        ]
        now = store.now()
        wanted = [(schedule, edits.retire(schedule, origin, now)) for schedule in gone]
        changes = [self._noted(edit, schedule, "retired", by) for schedule, edit in wanted if edit is not None]
        return len(changes) - len(store.edit_schedules(changes)) if changes else 0

    def _registrations(
        self, specs: Mapping[str, ScheduleSpec], existing: Mapping[str, Schedule], origin: Origin, by: str
    ) -> Sequence[Edit]:
        """The edits that update the existing schedules to the given specs."""
        store = self._store()
        tenants = check_tenants(store, specs)
        now = store.now()
        changes = []
        for name, spec in specs.items():
            before, tenant = existing.get(name), tenants.get(spec.tenant)
            edit = edits.register(before, name, followed(spec, tenant), origin, now, self._new_id)
            _check_times(before, edit, origin, now)
            if edit is not None:
                changes.append(self._noted(born_paused(edit, tenant, now), before, _verb(before, edit), by))
        return changes

    def plan(
        self,
        declared: Mapping[str, ScheduleSpec],
        origin: Origin,
        *,
        kept: Container[str] = (),
        tenants: Mapping[str, Tenant] | None = None,
    ) -> Sequence[Planned]:
        """The planned changes of a deploy of these schedules, and those of its origin that it would retire.

        Schedules that are kept stay, although this origin no longer has them. The tenants are those of the deploy.
        """
        store = self._store()
        found = check_tenants(store, declared, tenants)
        said = {name: followed(spec, found.get(spec.tenant)) for name, spec in declared.items()}

        def plan(passed: dict[str, ScheduleSpec]) -> Sequence[Planned]:
            return plan_schedules(store, passed, origin, self._new_id, kept, self._redaction)

        return put_through(self._middleware, said, plan)

    def apply(self, planned: Sequence[Planned], *, by: str = "") -> int:
        """Make planned changes. Returns how many. VersionConflict if something has changed since."""
        changes = [
            self._noted(one.edit, one.before, _PLANNED.get(one.kind, "changed"), by) for one in planned if one.edit
        ]
        tenants = [one.edit.id for one in planned if one.edit and _has_tenant(one)]
        batches = (tenants[start : start + TOGETHER] for start in range(0, len(tenants), TOGETHER))
        pending_changes = [add_pending_change(self._store(), batch, by or whoami(), self._new_id) for batch in batches]
        applied = apply_edits(self._store(), changes)
        for pending in pending_changes:
            settle_schedules(self._store(), pending, self._new_id)
        return applied

    def get(self, schedule_id: str) -> ScheduleView:
        """The schedule of that id; ScheduleNotFound if there is none."""
        return self._view(self._read(schedule_id))

    def list(self, *, tenant: str | None = None, limit: int = 50, cursor: str | None = None) -> Page[ScheduleView]:
        """Schedules by id, a page at a time: all of them, or those of a tenant."""
        where = ScheduleFilter(tenant=tenant)
        page = self._store().list_schedules(where, cursor=cursor, limit=check_limit(limit))
        return Page([self._view(checked(record)) for record in page.items], page.cursor)

    def remove(self, schedule_id: str, *, by: str = "", expect_version: int | None = None, force: bool = False) -> bool:
        """Remove a schedule and cancel its waiting jobs; no error if there is none.

        A schedule that code or a file declares is removed there. `force` removes it here, such as one of an app that no
        longer exists.
        """
        origin = None if force else Origin()

        def decide(schedule: Schedule, now: int) -> Edit:
            return edits.remove(schedule, now, origin)

        try:
            self._change(schedule_id, decide, "removed", by, expect_version)
        except ScheduleNotFound:
            return False
        return True

    def pause(
        self,
        schedule_id: str,
        *,
        until: datetime | None = None,
        reason: str = "",
        by: str = "",
        expect_version: int | None = None,
    ) -> ScheduleView:
        """Stop firing until resumed, or until an instant; waiting jobs are cancelled."""
        end = optional_instant("until", until)

        def decide(schedule: Schedule, now: int) -> Edit:
            check_pause_end(end, now)
            return edits.pause(schedule, now, reason=reason, by=by, until=end)

        return self._change(
            schedule_id,
            decide,
            "paused",
            by,
            expect_version,
        )

    def resume(self, schedule_id: str, *, by: str = "", expect_version: int | None = None) -> ScheduleView:
        """Fire again. Times within the pause stay skipped; times missed before it are handled by `catchup`."""
        return self._change(schedule_id, edits.resume, "resumed", by, expect_version)

    def enable(self, schedule_id: str, *, by: str = "", expect_version: int | None = None) -> ScheduleView:
        """Turn it on: it fires from now on."""
        return self._change(schedule_id, edits.enable, "enabled", by, expect_version)

    def disable(self, schedule_id: str, *, by: str = "", expect_version: int | None = None) -> ScheduleView:
        """Turn it off until it is enabled, also across deploys; waiting jobs are cancelled."""
        return self._change(schedule_id, edits.disable, "disabled", by, expect_version)

    def run_now(self, schedule_id: str, *, by: str = "") -> Job[Any]:
        """Start one run immediately, whatever its times, pauses and live jobs. If another job holds its key, or a
        collection has a live task, that job is returned instead."""
        if (schedule := self._read(schedule_id)).spec.sync is not None:
            started = start_task(self._store(), schedule, self._new_id, by)
            return Job(self._reader, started.job.id, existed=started.existed, record=started.job)
        for _ in range(TRIES):
            holder = key_holder(self._store(), schedule.spec.key)
            if holder is not None:
                return Job(self._reader, holder.id, existed=True, record=holder)
            job_id = self._new_id()
            run = partial(edits.trigger_now, job_id=job_id, by=by)
            schedule = self._change(schedule_id, run, "run by hand", by).record
            if not schedule.spec.key or was_made(self._store(), job_id, schedule):
                return Job(self._reader, job_id)
        raise Refused(
            sentence(
                "refused.key_taken",
                "other jobs took the key {key!r} of schedule '{schedule}' {tries} times while this run "
                "was being made, and ended; try again",
                key=schedule.spec.key,
                schedule=schedule_id,
                tries=TRIES,
            )
        )

    def next_runs(self, schedule_id: str, n: int = 10, *, after: datetime | None = None) -> Runs:
        """The next n times at which its jobs may start, by the present state, in its zone; jitter is included."""
        schedule = self._read(schedule_id)
        at = check_instant("after", after) if after else self._store().now()
        if schedule.silence is not None and schedule.silence.until is not None:
            at = max(at, schedule.silence.until - 1)
        slots = coming_slots(schedule, at - jitter_of(schedule), n)
        return [local_start(schedule, slot) for slot in slots]

    def occurrences(
        self, schedule_id: str, start: datetime, end: datetime, *, limit: int = 50, cursor: str | None = None
    ) -> Page[OccurrenceFacts]:
        """The outcomes of the expected times between two instants, oldest first."""
        page = self._store().list_occurrences(
            schedule_id,
            check_instant("start", start),
            check_instant("end", end),
            cursor=cursor,
            limit=check_limit(limit),
        )
        return Page([occurrence_facts(line) for line in page.items], page.cursor)

    def why(self, schedule_id: str, at: datetime | None = None) -> WhyFacts:
        """Why it did or did not run at an instant (by default when it last was to): an outcome, a sentence, a fix.

        For a schedule that was removed, the answer has the author and the time.
        """
        instant = optional_instant("at", at)
        found = self._store().get_schedules([schedule_id])
        if found:
            return why_facts(why_at(self._store(), found[0], instant))
        removed = why_no_more(self._store(), schedule_id, instant)
        if removed is None:
            raise ScheduleNotFound(
                sentence("missing.schedule", "no schedule has the id {schedule!r}", schedule=schedule_id)
            )
        return why_facts(removed)

    def changes(self, schedule_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Change]:
        """The audit records of the schedule, newest first. They outlive the schedule."""
        return list_changes(
            self._store(), self._redaction, subject_of("schedule", schedule_id), limit=limit, cursor=cursor
        )

    def _change(
        self,
        schedule_id: str,
        decide: Callable[[Schedule, int], Edit | None],
        verb: str,
        by: str,
        expect_version: int | None = None,
    ) -> ScheduleView:
        """Decide on the stored schedule, and apply the edit if it is unchanged."""
        store = self._store()
        for _ in range(TRIES):
            schedule = self._read(schedule_id)
            _check_version([schedule_id], {schedule_id: schedule}, expect_version)
            edit = decide(schedule, store.now())
            if edit is None:
                return self._view(schedule)
            if not store.edit_schedules([self._noted(edit, schedule, verb, by)]):
                return self._view(edit.after)
        raise VersionConflict(
            sentence(
                "refused.schedule_changing", "schedule '{schedule}' kept changing; try again", schedule=schedule_id
            )
        )

    def _noted(self, edit: Edit, before: Schedule | None, verb: str, by: str) -> Edit:
        return edits.with_audit(edit, before, Author(record_id=self._new_id(), by=by or whoami(), verb=verb))

    def _view(self, record: Schedule) -> ScheduleView:
        return ScheduleView(record, self._store().now() if record.has_jobs_ahead else None)

    def _read(self, schedule_id: str) -> Schedule:
        found = self._store().get_schedules([schedule_id])
        if not found:
            raise ScheduleNotFound(
                sentence("missing.schedule", "no schedule has the id {schedule!r}", schedule=schedule_id)
            )
        return checked(found[0])


def _check_times(before: Schedule | None, edit: Edit | None, origin: Origin, now: int) -> None:
    """Refuse a schedule that can never run, if it is made now. In code or in a file, its date may have passed since
    it was written: that is a warning."""
    schedule = before if edit is None else edit.after
    if schedule is None or (edit is not None and edit.jobs):
        return
    if origin.kind != "api":
        why = why_never(schedule, now)
        if why is not None:
            log.warning("schedule %s has no run ahead: %s; take it out, or give it a time to come", schedule.id, why)
    elif before is None:
        check_new(schedule, now)


def _verb(before: Schedule | None, edit: Edit) -> str:
    if before is None:
        return "created"
    if before.origin.is_retired:
        return "restored"
    return "changed" if before.generation == edit.after.generation else "re-timed"


def _check_version(names: Sequence[str], existing: dict[str, Schedule], expect: int | None) -> None:
    for name in names if expect is not None else ():
        version = existing[name].version if name in existing else 0
        if version and expect == 0:
            raise VersionConflict(
                sentence(
                    "refused.schedule_exists",
                    "there is a schedule '{schedule}' already, in version {version}",
                    schedule=name,
                    version=version,
                )
            )
        if version != expect:
            raise VersionConflict(
                sentence(
                    "refused.schedule_version",
                    "schedule '{schedule}' has version {version}, not {expect}: somebody changed it first",
                    schedule=name,
                    version=version,
                    expect=expect,
                )
            )


def _has_tenant(planned: Planned) -> bool:
    """Whether it has a tenant, or had one."""
    then_and_now = (planned.edit.after if planned.edit else None, planned.before)
    return any(schedule is not None and bool(schedule.spec.tenant) for schedule in then_and_now)


def _check_distinct(names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DuplicateName(f"schedule '{twice[0]}' is given more than once; which one is meant?")
