"""Reads the jobs of a live APScheduler 3 scheduler. Its weekdays count from Monday, and all its fields must fit."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rota.errors import RotaError
from rota.importers.field_sets import (
    HOUR,
    MINUTE,
    MONTH,
    MONTH_DAY,
    MONTHS,
    WEEKDAY,
    WEEKDAYS,
    day_texts,
    field_text,
    values_of,
)
from rota.importers.found import SHOWN_RUNS, Found, Item, UnsupportedItem, Wanted, distinct
from rota.importers.naming import id_of
from rota.triggers import cron, every, once

if TYPE_CHECKING:
    from rota.importers.found import Tasks
    from rota.triggers import Trigger

NAMES = {name.lower(): number for number, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
SECOND = timedelta(seconds=1)
NTH = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}
_NTH = re.compile(rf"({'|'.join(NTH)}) ({'|'.join(NAMES)})")
STOPPED = 0


class ScheduledJob(Found, frozen=True, kw_only=True):
    """One job of a scheduler."""

    function: str  # module:function
    trigger: Any
    args: list[Any] = []  # noqa: RUF012 - msgspec copies the defaults of its structs
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - likewise
    misfire_grace: int | None = None  # seconds; None: however late
    coalesce: bool = True
    max_instances: int = 1
    is_paused: bool = False


def read_scheduler(scheduler: Any) -> list[ScheduledJob]:
    """The jobs of all job stores. A scheduler that was not started is not started by this."""
    jobs = list(scheduler.get_jobs())
    if scheduler.state == STOPPED:
        for alias, store in scheduler._jobstores.items():  # noqa: SLF001 - a stopped scheduler shows pending jobs alone
            store.start(scheduler, alias)
            known = {job.id for job in jobs}
            jobs += [job for job in store.get_all_jobs() if job.id not in known]
    defaults = getattr(scheduler, "_job_defaults", {})
    return [_found(job, defaults) for job in jobs]


def _found(job: Any, defaults: dict[str, Any]) -> ScheduledJob:
    def said(name: str, otherwise: Any) -> Any:
        return getattr(job, name, defaults.get(name, otherwise))  # a pending job has no defaults yet

    return ScheduledJob(
        name=str(job.id),
        old_text=f"{job.trigger} {job.func_ref or job.name}",
        function=str(job.func_ref or job.name),
        trigger=job.trigger,
        args=list(job.args),
        kwargs=dict(job.kwargs),
        misfire_grace=said("misfire_grace_time", 1),
        coalesce=bool(said("coalesce", True)),  # noqa: FBT003 - APScheduler's default
        max_instances=said("max_instances", 1),
        is_paused=getattr(job, "next_run_time", "pending") is None,
    )


def translate_job(job: ScheduledJob, now: datetime) -> Wanted:
    """The schedule of one job."""
    warnings: list[str] = []
    zone = str(getattr(job.trigger, "timezone", None) or "UTC")
    try:
        trigger = _trigger(job)
    except RotaError as err:
        raise UnsupportedItem(str(err)) from err
    options: dict[str, Any] = {"tz": zone, "enabled": not job.is_paused, "overlap": "skip"}
    if job.max_instances > 1:
        options["overlap"] = "allow"
        warnings.append(f"max_instances={job.max_instances}: runs may overlap, and Rota sets no limit to their number")
    if job.misfire_grace is None:
        options["catchup"] = "latest" if job.coalesce else "all"
    else:
        options |= {"catchup": "skip", "grace": timedelta(seconds=job.misfire_grace)}
    jitter = getattr(job.trigger, "jitter", None)
    if jitter:
        options["jitter"] = timedelta(seconds=jitter)
        warnings.append("jitter: Rota delays a run by up to this long; APScheduler also starts runs earlier")
    if type(job.trigger).__name__ == "CronTrigger":
        options |= _bounds(job.trigger, now)
    return Wanted(
        task=job.function.replace(":", "."),
        trigger=trigger,
        args=job.args,
        kwargs=job.kwargs,
        options=options,
        warnings=tuple(warnings),
    )


def _bounds(trigger: Any, now: datetime) -> dict[str, Any]:
    """Its start matters only while it lies ahead: a start earlier today would run at once."""
    is_ahead = trigger.start_date is not None and trigger.start_date > now
    said = {"start": trigger.start_date if is_ahead else None, "end": trigger.end_date}
    return {name: at for name, at in said.items() if at is not None}


def _trigger(job: ScheduledJob) -> Trigger:
    match type(job.trigger).__name__:
        case "CronTrigger":
            return cron_of({field.name: str(field) for field in job.trigger.fields})
        case "IntervalTrigger":
            return _interval(job.trigger)
        case "DateTrigger":
            return once(job.trigger.run_date)
        case other:
            raise UnsupportedItem(f"{other} is a trigger that Rota does not know")


def _interval(trigger: Any) -> Trigger:
    if trigger.interval % SECOND or trigger.interval < SECOND:
        raise UnsupportedItem(f"the interval {trigger.interval} is not a whole number of seconds")
    start = trigger.start_date
    whole = start.replace(microsecond=0) + (SECOND if start.microsecond else timedelta(0))  # never early
    return every(trigger.interval, start=whole.astimezone(UTC), end=trigger.end_date)


def cron_of(fields: dict[str, str]) -> Trigger:
    """The rule of APScheduler's fields, seconds included."""
    for name in ("year", "week"):
        if fields.get(name, "*") != "*":
            raise UnsupportedItem(f"{name}={fields[name]!r}: Rota's cron has no such field")
    seconds = field_text(values_of(fields["second"], MINUTE), MINUTE, fields["second"])
    minutes = field_text(values_of(fields["minute"], MINUTE), MINUTE, fields["minute"])
    hours = field_text(values_of(fields["hour"], HOUR), HOUR, fields["hour"])
    months = field_text(values_of(fields["month"], MONTH, MONTHS), MONTH, fields["month"])
    month_day, weekday = _days(fields["day"], fields["day_of_week"])
    whole = f"{minutes} {hours} {month_day} {months} {weekday}"
    return cron(whole if seconds == "0" else f"{seconds} {whole}")


def _days(day: str, day_of_week: str) -> tuple[str, str]:
    weekdays = {(number + 1) % 7 for number in values_of(day_of_week, WEEKDAY, NAMES)}
    special = [part.strip() for part in day.split(",") if part.strip() == "last" or _NTH.fullmatch(part.strip())]
    if not special:
        days = values_of(day, MONTH_DAY)
        return day_texts(field_text(days, MONTH_DAY, day), days, weekdays)
    if len(weekdays) < len(WEEKDAYS) or len(special) < len(day.split(",")) or ("last" in special and len(special) > 1):
        raise UnsupportedItem(f"day={day!r} and day_of_week={day_of_week!r}: Rota's cron cannot say both at once")
    if special == ["last"]:
        return "L", "*"
    parts = [part.split() for part in special]
    return "*", ",".join(f"{name.upper()}{NTH[nth]}" for nth, name in parts)


def scheduler_items(jobs: list[ScheduledJob], tasks: Tasks, *, prefix: str, now: datetime) -> list[Item]:
    ids = distinct(id_of(job.name, prefix) for job in jobs)
    return [_item(name, job, tasks, now) for name, job in zip(ids, jobs, strict=True)]


def _item(name: str, job: ScheduledJob, tasks: Tasks, now: datetime) -> Item:
    try:
        spec, warnings = tasks.spec(translate_job(job, now), "UTC")
    except UnsupportedItem as err:
        return Item(id=name, name=job.name, old_text=job.old_text, reason=str(err))
    return Item(
        id=name, name=job.name, old_text=job.old_text, spec=spec, warnings=warnings, old_runs=_old_runs(job, now)
    )


def _old_runs(job: ScheduledJob, now: datetime) -> tuple[datetime, ...] | None:
    """By the trigger itself; one that moves its runs at random cannot be asked."""
    if getattr(job.trigger, "jitter", None):
        return None
    runs: list[datetime] = []
    previous, after = None, now
    while len(runs) < SHOWN_RUNS:
        found = job.trigger.get_next_fire_time(previous, after)
        if found is None:
            break
        if found > now:
            runs.append(found)
        previous, after = found, found + timedelta(microseconds=1)
    return tuple(runs)
