"""Builds a schedule's definition from the arguments of the API."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Never, TypedDict

import msgspec

from rota.errors import BadOption, BadTrigger
from rota.keywords import refuse_unknown
from rota.model.micros import check_instant, fine_span_of, span_of
from rota.model.names import check_key, check_name, check_priority
from rota.model.option_names import FOR_SCHEDULE
from rota.model.schedules.schedule import ScheduleSpec, check_spec
from rota.model.tenant import day_bound
from rota.sentences import sentence
from rota.tasks.task import Configured, Request, Task
from rota.triggers import Trigger
from rota.triggers.bounds import FIRST, OLDEST_START, check_years
from rota.triggers.zone import zone_name

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Catchup, Overlap

EPOCH = date(1970, 1, 1)


class ScheduleKeywords(TypedDict, total=False):
    """The options of a schedule."""

    overlap: Overlap  # a time comes while an earlier job has not ended: "skip", "queue", "cancel" or "allow"
    catchup: Catchup  # which missed times run: "latest", "all" or "skip"
    catchup_limit: int  # with catchup="all", how many at most
    grace: str | timedelta  # how late a time may be fired without counting as missed
    jitter: str | timedelta | None  # moves all runs by one offset up to this, computed from the id
    start: datetime | date | None  # no time before this instant or day
    end: datetime | date | None  # no time after this instant or day
    max_runs: int | None  # how many jobs its trigger makes; then it is finished
    run_on_start: bool  # also run once when it is first registered
    enabled: bool  # False registers it without firing
    description: str  # a text for people
    priority: int | str | None  # of its jobs; None: its tenant's, else the task's
    queue: str | None  # of its jobs; None: its tenant's, else the task's
    tz: str | None  # an IANA name; None: its tenant's, else the app's
    lookahead: str | timedelta | None  # how long before they are due its jobs are created
    tenant: str | None  # whose timezone and defaults it follows
    key: str | None  # the unique key of its jobs; None: the task's
    key_for: str | timedelta | None  # how long the key holds after a job was created, even if the job ends before


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
    lookahead: str | timedelta | None = None,
    tenant: str | None = None,
    key: str | None = None,
    key_for: str | timedelta | None = None,
    **unknown: Never,
) -> ScheduleSpec:
    """A schedule's definition from the arguments of the API."""
    refuse_unknown("a schedule", unknown, ScheduleKeywords.__annotations__, FOR_SCHEDULE)
    _check_trigger(trigger)
    _check_request(request)
    said_zone = one_zone(trigger, tz)
    zone = said_zone or default_tz
    own_key, held_for = _key(request, key, key_for)
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
        start=None if start is None else bound_instant("start", start, zone),
        end=None if end is None else bound_instant("end", end, zone),
        day_bounds=tuple(name for name, bound in (("start", start), ("end", end)) if _is_day(bound)),
        max_runs=max_runs,
        run_on_start=run_on_start,
        enabled=enabled,
        description=description,
        lookahead=span_of(lookahead) if lookahead is not None else 0,
        tenant="" if tenant is None else check_name("tenant", tenant),
        key=own_key,
        key_for=held_for,
    )
    return check_spec(_following(spec, request, tz=said_zone, queue=queue, priority=priority))


def one_zone(trigger: Trigger, tz: object) -> str | None:
    """The zone that a trigger or the schedule names; if both name one, it must be the same."""
    said = zone_name(tz)
    if said and trigger.tz and said != trigger.tz:
        raise BadOption(
            sentence(
                "option.two_zones",
                "tz={tz!r} contradicts the trigger, which names the zone {zone!r}; keep one of them",
                tz=said,
                zone=trigger.tz,
            )
        )
    return said or trigger.tz


def _check_trigger(trigger: object) -> None:
    if not isinstance(trigger, Trigger):
        raise BadTrigger(f"{trigger!r} is not a trigger", fix="write cron('0 9 * * *'), every('5m') or calendar(…)")


def _check_request(request: object) -> None:
    if isinstance(request, (Task, Configured)):
        name = request.name if isinstance(request, Task) else "task.using(…)"
        raise BadOption(f"a schedule needs a call, and {request!r} is none yet; write {name}.job(…) with its arguments")
    if not isinstance(request, Request):
        raise BadOption(f"a schedule needs a call such as task.job(…), got {request!r}; the trigger comes after it")
    if request.overrides.delay or request.overrides.at is not None:
        raise BadOption("a schedule's job takes no delay= or at=: its trigger says when it runs")
    if request.overrides.transaction is not None:
        raise BadOption(
            "a schedule's job takes no tx=: a schedule cannot be part of your transaction; put it after your commit"
        )


def _key(request: Request, key: str | None, key_for: str | timedelta | None) -> tuple[str, int]:
    """The unique key of the schedule's jobs and how long it holds: as given here, else as in the request."""
    held = fine_span_of(key_for, least=1) if key_for is not None else 0
    if key is not None:
        return check_key(key), held
    if key_for is not None and request.key is None:
        raise BadOption(
            sentence(
                "option.key_for",
                "key_for={key_for!r} needs a key= to hold on to, or a task with unique=True",
                key_for=key_for,
            )
        )
    return request.key or "", held or request.key_for


def _following(
    spec: ScheduleSpec, request: Request, *, tz: str | None, queue: str | None, priority: int | str | None
) -> ScheduleSpec:
    """The spec whose open values follow the tenant, if the schedule has one."""
    if not spec.tenant:
        return spec
    own = {
        "tz": tz,
        "queue": queue if queue is not None else request.overrides.queue,
        "priority": priority if priority is not None else request.overrides.priority,
    }
    left_open = {name: getattr(spec, name) for name, said in own.items() if said is None}
    return msgspec.structs.replace(spec, follows=left_open)


def _is_day(bound: object) -> bool:
    return isinstance(bound, date) and not isinstance(bound, datetime)


def bound_instant(name: str, given: object, tz: str) -> int:
    """A schedule's start or end as an instant; a date is its first second in the schedule's zone, or its last."""
    first = OLDEST_START if name == "start" else FIRST
    if isinstance(given, datetime):
        return check_instant(name, given, first=first)
    if not isinstance(given, date):
        raise BadOption(f"{name}={given!r} must be an aware datetime or a date")
    check_years(name, given, first)
    return day_bound((given - EPOCH).days, tz or "UTC", is_end=name == "end")
