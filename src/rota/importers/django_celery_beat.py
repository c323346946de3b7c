"""Reads the tables of django-celery-beat in SQLite and PostgreSQL. Neither Django nor Celery is needed for it."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from rota.errors import BadStoreUrl, RotaError
from rota.importers.celery_beat import AS_BEAT
from rota.importers.celery_rules import celery_runs, crontab_trigger, interval_trigger, priority_of
from rota.importers.django_database import DjangoDatabase, instant_of
from rota.importers.found import SHOWN_RUNS, Found, Item, UnsupportedItem, Wanted, distinct
from rota.importers.naming import id_of
from rota.triggers import once

if TYPE_CHECKING:
    from rota.importers.found import Tasks
    from rota.triggers import Trigger

ROWS = """
SELECT t.id, t.name, t.task, t.args, t.kwargs, t.queue, t.exchange, t.routing_key, t.headers, t.priority, t.expires,
       t.expire_seconds, t.enabled, t.one_off, t.start_time, t.last_run_at, t.total_run_count,
       t.date_changed, t.description, c.minute, c.hour,
       c.day_of_week, c.day_of_month, c.month_of_year, c.timezone, i.every, i.period, k.clocked_time, s.event
FROM django_celery_beat_periodictask t
LEFT JOIN django_celery_beat_crontabschedule c ON c.id = t.crontab_id
LEFT JOIN django_celery_beat_intervalschedule i ON i.id = t.interval_id
LEFT JOIN django_celery_beat_clockedschedule k ON k.id = t.clocked_id
LEFT JOIN django_celery_beat_solarschedule s ON s.id = t.solar_id
"""
QUERY = f"{ROWS} WHERE t.task <> 'celery.backend_cleanup' AND t.name NOT LIKE 'rota-take-over-%' ORDER BY t.id"


class PeriodicTask(Found, frozen=True, kw_only=True):
    """One row, with the row of its rule."""

    id: int
    task: str
    args: str = "[]"
    kwargs: str = "{}"
    queue: str | None = None
    exchange: str | None = None
    routing_key: str | None = None
    headers: str | None = None
    priority: int | None = None
    expires: datetime | None = None
    expire_seconds: int | None = None
    enabled: bool = True
    one_off: bool = False
    start_time: datetime | None = None
    last_run_at: datetime | None = None
    total_run_count: int = 0
    date_changed: datetime | None = None
    description: str = ""
    crontab: tuple[str, ...] = ()  # minute, hour, weekday, day of the month, month
    timezone: str = "UTC"
    interval: tuple[int, str] | None = None
    clocked: datetime | None = None
    solar: str | None = None
    problem: str = ""  # why it cannot be read


def read_tables(url: str) -> list[PeriodicTask]:
    """The rows of a database: sqlite:///path or postgresql://…"""
    with closing(DjangoDatabase(url, is_read_only=True)) as database:
        return [row_of(row) for row in database.rows(QUERY)]


def row_of(row: dict[str, Any]) -> PeriodicTask:
    """A row of ROWS."""
    fields = tuple(row[name] for name in ("minute", "hour", "day_of_week", "day_of_month", "month_of_year"))
    crontab = () if fields[0] is None else fields
    interval = None if row["every"] is None else (row["every"], row["period"])
    times, problem = _times_of(row)
    names = ("id", "name", "task", "args", "kwargs", "queue", "exchange", "routing_key", "headers", "priority")
    plain = {name: row[name] for name in (*names, "expire_seconds", "total_run_count", "description")}
    return PeriodicTask(
        **plain,
        **times,
        old_text=_old_text(row, crontab),
        enabled=bool(row["enabled"]),
        one_off=bool(row["one_off"]),
        crontab=crontab,
        timezone=str(row["timezone"] or "UTC"),
        interval=interval,
        solar=row["event"],
        problem=problem,
    )


def _times_of(row: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Its times by their fields, and what is wrong if one cannot be read. The other rows are still imported."""
    columns = {name: name for name in ("expires", "start_time", "last_run_at", "date_changed")}
    try:
        return {field: instant_of(row[name]) for field, name in {**columns, "clocked": "clocked_time"}.items()}, ""
    except BadStoreUrl as err:
        return {}, str(err)


def _old_text(row: dict[str, Any], crontab: tuple[str, ...]) -> str:
    """The rule as django-celery-beat prints it: weekday before day of the month is kept apart by names."""
    if crontab:
        minute, hour, weekday, day, month = crontab
        rule = f"crontab {minute} {hour} {day} {month} {weekday} ({row['timezone']})"
    elif row["every"] is not None:
        rule = f"every {row['every']} {row['period']}"
    else:
        rule = f"clocked {row['clocked_time']}" if row["clocked_time"] else f"solar {row['event']}"
    return f"{rule} {row['task']}"


def translate_row(row: PeriodicTask, now: datetime) -> Wanted:
    """The schedule of one row."""
    if row.problem:
        raise UnsupportedItem(row.problem)
    try:
        trigger = trigger_of(row)
        args = msgspec.json.decode(row.args or "[]", type=list[Any])
        kwargs = msgspec.json.decode(row.kwargs or "{}", type=dict[str, Any])
    except (RotaError, msgspec.DecodeError, RecursionError) as err:
        raise UnsupportedItem(str(err)) from err
    priority, warnings = priority_of(row.priority)
    for name in ("exchange", "routing_key", "expire_seconds"):
        if getattr(row, name):
            warnings.append(f"{name}={getattr(row, name)!r} has no counterpart and is left out")
    if row.headers not in {None, "", "{}"}:
        warnings.append("headers have no counterpart and are left out")
    if row.interval is not None:
        warnings.append("the interval is counted from the import, or with --take-over from beat's last run")
    said = {
        "queue": row.queue or None,
        "end": row.expires,
        "start": row.start_time if row.start_time is not None and row.start_time > now else None,
        "max_runs": 1 if row.one_off and row.clocked is None else None,
        "description": row.description or None,
    }
    given = {name: value for name, value in said.items() if value is not None}
    options = {"tz": row.timezone, "enabled": row.enabled, **AS_BEAT, **priority, **given}
    return Wanted(task=row.task, trigger=trigger, args=args, kwargs=kwargs, options=options, warnings=tuple(warnings))


def trigger_of(row: PeriodicTask) -> Trigger:
    """The rule of a row; UnsupportedItem names what Rota does not have."""
    if row.crontab:
        return crontab_trigger(*row.crontab)
    if row.interval is not None:
        return interval_trigger(interval_of(row.interval))
    if row.clocked is not None:
        return once(row.clocked)
    if row.solar is not None:
        raise UnsupportedItem("solar schedules follow the sun, and Rota has no trigger for it")
    raise UnsupportedItem("the row has no rule")


def table_items(rows: list[PeriodicTask], tasks: Tasks, *, prefix: str, now: datetime) -> list[Item]:
    ids = distinct(id_of(row.name, prefix) for row in rows)
    return [_item(name, row, tasks, now) for name, row in zip(ids, rows, strict=True)]


def _item(name: str, row: PeriodicTask, tasks: Tasks, now: datetime) -> Item:
    try:
        spec, warnings = tasks.spec(translate_row(row, now), row.timezone)
    except UnsupportedItem as err:
        return Item(id=name, name=row.name, old_text=row.old_text, reason=str(err))
    runs = _old_runs(row, now)
    return Item(id=name, name=row.name, old_text=row.old_text, spec=spec, warnings=warnings, old_runs=runs)


def _old_runs(row: PeriodicTask, now: datetime) -> tuple[datetime, ...] | None:
    """By Celery's own code, if it is installed; an interval is counted from the last run, or from the last edit."""
    if row.crontab:
        return celery_runs(row.crontab, row.timezone, now)
    if row.clocked is not None:
        return (row.clocked,) if row.clocked > now else ()
    since = row.last_run_at or row.date_changed
    if row.interval is None or since is None or row.start_time is not None:
        return None
    interval = interval_of(row.interval)
    first = max(since + interval, now)
    return tuple(first + number * interval for number in range(1 if row.one_off else SHOWN_RUNS))


def interval_of(said: tuple[int, str]) -> timedelta:
    """The length of an interval as its table has it."""
    number, period = said
    try:
        return timedelta(**{period: number})
    except (TypeError, OverflowError) as err:
        raise UnsupportedItem(f"the interval of {number} {period} cannot be read: {err}") from err
