"""Translates Celery's crontab, for `beat_schedule` and for django-celery-beat. Day fields are joined by "and"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from rota.importers.field_sets import (
    HOUR,
    MINUTE,
    MONTH,
    MONTH_DAY,
    MONTHS,
    day_texts,
    field_text,
    values_of,
    weekdays_of,
)
from rota.importers.found import SHOWN_RUNS, UnsupportedItem
from rota.triggers import cron, every

if TYPE_CHECKING:
    from rota.triggers import Trigger

FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
SECOND = timedelta(seconds=1)


def crontab_trigger(minute: str, hour: str, day_of_week: str, day_of_month: str, month_of_year: str) -> Trigger:
    """The rule of five fields in Celery's text; UnsupportedItem names what Rota does not have."""
    days = values_of(day_of_month, MONTH_DAY)
    month_day, weekday = day_texts(field_text(days, MONTH_DAY, day_of_month), days, weekdays_of(day_of_week))
    minutes = field_text(values_of(minute, MINUTE), MINUTE, minute)
    hours = field_text(values_of(hour, HOUR), HOUR, hour)
    months = field_text(values_of(month_of_year, MONTH, MONTHS), MONTH, month_of_year)
    return cron(f"{minutes} {hours} {month_day} {months} {weekday}")


def interval_trigger(interval: timedelta) -> Trigger:
    """An interval of whole seconds."""
    if interval % SECOND or interval < SECOND:
        raise UnsupportedItem(f"the interval {interval} is not a whole number of seconds")
    return every(interval)


def priority_of(priority: object) -> tuple[dict[str, Any], list[str]]:
    """Celery's priority as Rota's, and what to know about it."""
    if not isinstance(priority, int):
        return {}, []
    known = "priority: Rota starts higher numbers first, as RabbitMQ does; with a Redis broker, Celery starts 0 first"
    return {"priority": max(0, min(priority, 100))}, [known] if priority else []


def celery_runs(fields: tuple[str, ...], tz: str, after: datetime) -> tuple[datetime, ...] | None:
    """The next runs by Celery's own code, if it is installed."""
    try:
        from celery.schedules import crontab  # noqa: PLC0415 - a system to come from
    except ImportError:
        return None
    rule = crontab(**dict(zip(FIELDS, fields, strict=True)))
    zone = ZoneInfo(tz)
    rule.tz = zone  # otherwise Celery compares days in the timezone of whichever app is current
    runs: list[datetime] = []
    at = after
    for _ in range(SHOWN_RUNS):
        start, delta, _now = rule.remaining_delta(at, tz=zone)
        at = (start + delta).astimezone(UTC)
        runs.append(at.astimezone(zone))
    return tuple(runs)
