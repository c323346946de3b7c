"""Schedules as callers see them: a view with datetimes, and app.schedules, the verbs about them."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from rota.errors import BadOption, BadTrigger, DuplicateName, ScheduleNotFound, VersionConflict
from rota.jobs import Job
from rota.ledger import why_at
from rota.model import edit as edits
from rota.model.firing import next_slot
from rota.model.micros import SECOND, datetime_of, micros_of, optional_datetime, span_of
from rota.model.names import check_name, check_priority, check_schedule_id
from rota.model.schedule import CATCHUPS, OVERLAPS, Origin, Schedule, ScheduleSpec, check_spec
from rota.planning import apply_plan, plan_schedules
from rota.store.contract import LARGEST_PAGE, Page
from rota.triggers import Trigger
from rota.triggers.zone import DAY, find_zone, zone_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.jobs import Jobs
    from rota.model.edit import Edit
    from rota.model.occurrence import Occurrence
    from rota.model.planning import Planned
    from rota.model.schedule import Catchup, Overlap
    from rota.model.why import Verdict
    from rota.store.contract import Store
    from rota.tasks import Request

TRIES = 5

EPOCH = date(1970, 1, 1)

Runs = list[datetime]


class ScheduleKeywords(TypedDict, total=False):
    """The options of a schedule."""

    overlap: Overlap
    catchup: Catchup
    catchup_limit: int
    grace: str | timedelta
    jitter: str | timedelta | None
    start: datetime | date | None
    end: datetime | date | None
    max_runs: int | None
    run_on_start: bool
    enabled: bool
    description: str
    priority: int | str | None
    queue: str | None
    tz: str | None


class ScheduleView:
    """A schedule as it was when it was read."""

    def __init__(self, record: Schedule) -> None:
        self.record = record
        self.id = record.id
        self.task = record.spec.task
        self.tz = record.spec.tz
        self.description = record.spec.description
        self.is_enabled = record.is_enabled
        self.is_paused = record.pause is not None
        self.pause_reason = record.pause.words if record.pause else None
        self.created_at = datetime_of(record.created_at)
        self.last_run = optional_datetime(record.last.enqueued_at)  # when its last job was made
        self.last_finished = optional_datetime(record.last.finished_at)
        self.last_status = record.last.status
        self.last_success = optional_datetime(record.last.success_at)
        self.problem = record.problem  # why it cannot be evaluated, where it cannot
        self.last_error = record.problem or record.last.error
        self.last_duration = None if record.last.duration is None else record.last.duration / SECOND
        self.run_count = record.run_count
        self.version = record.version
        self.origin = edits.describe_origin(record.origin)

    @property
    def trigger(self) -> Trigger:
        """Its rule; BadTrigger where what is stored cannot be evaluated."""
        return self.record.trigger

    @property
    def next_run(self) -> datetime | None:
        """When it fires next, in its zone; None while it is paused, disabled, broken or exhausted."""
        at = self.record.next_at if self.record.due_at is not None and not self.is_paused else None
        return None if at is None else datetime_of(at).astimezone(find_zone(self.tz).datetime_of(0).tzinfo)

    def explain(self) -> str:
        """Its times in one sentence, or why they cannot be told."""
        try:
            return self.trigger.explain()
        except BadTrigger as err:
            return f"cannot be evaluated: {self.problem or err}"

    def __repr__(self) -> str:
        return f"<schedule {self.id}: {self.explain()}>"


class Schedules:
    """app.schedules"""

    def __init__(self, store: Callable[[], Store], jobs: Jobs, new_id: Callable[[], str], tz: str) -> None:
        self._store = store
        self._jobs = jobs
        self._new_id = new_id
        self._tz = tz

    def put(
        self,
        schedule_id: str,
        request: Request,
        trigger: Trigger,
        *,
        expect_version: int | None = None,
        **options: Unpack[ScheduleKeywords],
    ) -> ScheduleView:
        """Add a schedule, or change it. Options are those of @app.schedule."""
        spec = make_spec(trigger, request, default_tz=self._tz, **options)
        name = check_schedule_id(schedule_id)
        self.register([(name, spec)], Origin(), expect_version=expect_version)
        return self.get(name)

    def put_many(self, items: Iterable[tuple[str, Request, Trigger]], **options: Unpack[ScheduleKeywords]) -> int:
        """Add or change many schedules in few calls; answers how many changed."""
        specs = [
            (check_schedule_id(name), make_spec(trigger, request, default_tz=self._tz, **options))
            for name, request, trigger in items
        ]
        _check_distinct([name for name, _ in specs])
        return sum(self.register(specs[start : start + 500], Origin()) for start in range(0, len(specs), 500))

    def register(
        self, specs: Sequence[tuple[str, ScheduleSpec]], origin: Origin, *, expect_version: int | None = None
    ) -> int:
        """Bring the store to what is said here; what is unchanged is left alone. Answers how many changed."""
        store = self._store()
        for _ in range(TRIES):
            existing = {schedule.id: schedule for schedule in store.get_schedules([name for name, _ in specs])}
            _check_version([name for name, _ in specs], existing, expect_version)
            now = store.now()
            wanted = [edits.register(existing.get(name), name, spec, origin, now, self._new_id) for name, spec in specs]
            changes = [edit for edit in wanted if edit is not None]
            if not changes or not store.edit_schedules(changes):
                return len(changes)
        raise VersionConflict("the schedules kept changing while they were registered; try again")

    def plan(self, declared: Mapping[str, ScheduleSpec], origin: Origin) -> Sequence[Planned]:
        """What a deploy of these would change, and which of its origin's schedules it would retire."""
        return plan_schedules(self._store(), declared, origin, self._new_id)

    def apply(self, planned: Sequence[Planned]) -> int:
        """Make planned changes; answers how many. VersionConflict where something has changed since."""
        return apply_plan(self._store(), planned)

    def get(self, schedule_id: str) -> ScheduleView:
        """The schedule of that id; ScheduleNotFound where there is none."""
        return ScheduleView(self._read(schedule_id))

    def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ScheduleView]:
        """Schedules by id, a page at a time."""
        page = self._store().list_schedules(cursor=cursor, limit=max(1, min(limit, LARGEST_PAGE)))
        return Page([ScheduleView(record) for record in page.items], page.cursor)

    def remove(self, schedule_id: str, *, expect_version: int | None = None) -> bool:
        """Remove a schedule and cancel what it has waiting; no error where there is none."""
        try:
            self._change(schedule_id, edits.remove, expect_version)
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
        """Stop firing until resumed, or until an instant; what waits is cancelled."""
        end = micros_of(until) if until else None
        return self._change(
            schedule_id, lambda s, now: edits.pause(s, now, reason=reason, by=by, until=end), expect_version
        )

    def resume(self, schedule_id: str, *, expect_version: int | None = None) -> ScheduleView:
        """Fire again from now on; what was missed meanwhile stays skipped."""
        return self._change(schedule_id, edits.resume, expect_version)

    def enable(self, schedule_id: str, *, expect_version: int | None = None) -> ScheduleView:
        """Turn it on: it fires from now on."""
        return self._change(schedule_id, edits.enable, expect_version)

    def disable(self, schedule_id: str, *, expect_version: int | None = None) -> ScheduleView:
        """Turn it off until it is enabled, whatever is deployed; what waits is cancelled."""
        return self._change(schedule_id, edits.disable, expect_version)

    def run_now(self, schedule_id: str, *, by: str = "") -> Job[Any]:
        """One run at once, whatever its times, pauses and live jobs."""
        job_id = self._new_id()
        self._change(schedule_id, lambda s, now: edits.trigger_now(s, now, job_id, by))
        return Job(self._jobs, job_id)

    def next_runs(self, schedule_id: str, n: int = 10, *, after: datetime | None = None) -> Runs:
        """The next n times at which it will fire, as things stand, in its zone."""
        schedule = self._read(schedule_id)
        at = micros_of(after) if after else self._store().now()
        if schedule.pause is not None and schedule.pause.until is not None:
            at = max(at, schedule.pause.until - 1)
        if schedule.spec.max_runs is not None:
            n = min(n, schedule.spec.max_runs - schedule.run_count)
        runs: Runs = []
        slot = next_slot(schedule, at) if schedule.due_at is not None else None
        while slot is not None and len(runs) < n:
            run = schedule.trigger.next_after(datetime_of(slot - SECOND))
            runs += [run] if run else []
            slot = next_slot(schedule, slot)
        return runs

    def occurrences(
        self, schedule_id: str, start: datetime, end: datetime, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Occurrence]:
        """What became of the expected times between two instants."""
        return self._store().list_occurrences(
            schedule_id, micros_of(start), micros_of(end), cursor=cursor, limit=max(1, min(limit, LARGEST_PAGE))
        )

    def why(self, schedule_id: str, at: datetime | None = None) -> Verdict:
        """Why it did or did not run at an instant (by default when it last was to): an outcome, a sentence, a fix."""
        return why_at(self._store(), self._read(schedule_id), micros_of(at) if at else None)

    def _change(
        self, schedule_id: str, decide: Callable[[Schedule, int], Edit | None], expect_version: int | None = None
    ) -> ScheduleView:
        """Decide on what is there, and apply it where it still is."""
        store = self._store()
        for _ in range(TRIES):
            schedule = self._read(schedule_id)
            _check_version([schedule_id], {schedule_id: schedule}, expect_version)
            edit = decide(schedule, store.now())
            if edit is None:
                return ScheduleView(schedule)
            if not store.edit_schedules([edit]):
                return ScheduleView(edit.after)
        raise VersionConflict(f"schedule '{schedule_id}' kept changing; try again")

    def _read(self, schedule_id: str) -> Schedule:
        found = self._store().get_schedules([schedule_id])
        if not found:
            raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}")
        return found[0]


def make_spec(
    trigger: Trigger,
    request: Request,
    *,
    default_tz: str = "UTC",
    overlap: Overlap = "skip",
    catchup: Catchup = "latest",
    catchup_limit: int = 100,
    grace: str | timedelta = "1m",
    jitter: str | timedelta | None = None,
    start: datetime | date | None = None,
    end: datetime | date | None = None,
    max_runs: int | None = None,
    run_on_start: bool = False,
    enabled: bool = True,
    description: str = "",
    priority: int | str | None = None,
    queue: str | None = None,
    tz: object = None,
) -> ScheduleSpec:
    """A schedule's definition from the words of the API."""
    if not isinstance(trigger, Trigger):
        raise BadTrigger(f"{trigger!r} is not a trigger", fix="write cron('0 9 * * *'), every('5m') or calendar(…)")
    if request.overrides.delay or request.overrides.at is not None:
        raise BadOption("a schedule's job takes no delay= or at=: its trigger says when it runs")
    if overlap not in OVERLAPS or catchup not in CATCHUPS:
        raise BadOption(f"overlap is one of {', '.join(OVERLAPS)}; catchup is one of {', '.join(CATCHUPS)}")
    zone = zone_name(tz) or trigger.tz or default_tz
    spec = ScheduleSpec(
        trigger=str(trigger),
        task=request.task,
        payload=request.payload.decode(),
        queue=check_name("queue", queue) if queue is not None else request.queue,
        priority=check_priority(priority) if priority is not None else request.priority,
        tz=zone,
        overlap=overlap,
        catchup=catchup,
        catchup_limit=catchup_limit,
        grace=span_of(grace),
        jitter=span_of(jitter) if jitter is not None else 0,
        start=_bound(start, zone, is_end=False),
        end=_bound(end, zone, is_end=True),
        max_runs=max_runs,
        run_on_start=run_on_start,
        enabled=enabled,
        description=description,
    )
    return check_spec(spec)


def _bound(given: datetime | date | None, tz: str, *, is_end: bool) -> int | None:
    """An instant; a date is its first second in the schedule's zone, or as an end its last."""
    if given is None:
        return None
    if isinstance(given, datetime):
        return micros_of(given)
    if not isinstance(given, date):
        raise BadOption(f"{'end' if is_end else 'start'}={given!r} must be an aware datetime or a date")
    day = given + timedelta(days=1) if is_end else given
    second = find_zone(tz or "UTC").instant_of((day - EPOCH).days * DAY)
    return (second - 1 if is_end else second) * SECOND


def _check_version(names: Sequence[str], existing: dict[str, Schedule], expect: int | None) -> None:
    for name in names if expect is not None else ():
        version = existing[name].version if name in existing else 0
        if version != expect:
            raise VersionConflict(f"schedule '{name}' has version {version}, not {expect}: somebody changed it first")


def _check_distinct(names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DuplicateName(f"schedule '{twice[0]}' is given more than once; which one is meant?")
