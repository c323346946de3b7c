"""Describes a trigger in a sentence, with "and" and "or" where cron readers differ, in the phrases of a language."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from rota.triggers.cron_field import FIRST_YEAR
from rota.triggers.phrases import ENGLISH

if TYPE_CHECKING:
    from rota.triggers.calendar_rule import CalendarRule
    from rota.triggers.cron_field import Field
    from rota.triggers.cron_text import CronFields
    from rota.triggers.phrases import Phrases

_MOST_TIMES = 6  # a longer list of times is described by its fields
_LAST = -1  # the key of "last" in the names of weekdays in a month


def explain_cron(fields: CronFields, tz: str | None, said: Phrases = ENGLISH) -> str:
    """A cron expression as a sentence."""
    parts = [_times(fields, said), _days(fields, said), _months(fields.month, said), _years(fields.year, said)]
    sentence = " ".join(part for part in parts if part)
    return f"{sentence}, {_zone(tz, said)}"


def explain_every(
    interval: int, start: date | int | None, end: date | int | None, tz: str | None, said: Phrases = ENGLISH
) -> str:
    """An elapsed interval as a sentence."""
    sentence = " ".join([_elapsed(interval, said), *_bounds(start, end, said)])
    return f"{sentence}, {_zone(tz, said)}" if isinstance(start, date) or isinstance(end, date) else sentence


def explain_once(at: datetime, tz: str | None, said: Phrases = ENGLISH) -> str:
    return f"{said.say('once', date=f'{at:%Y-%m-%d}', time=f'{at:%H:%M:%S}')}, {_zone(tz, said)}"


def explain_calendar(rule: CalendarRule, time: int, first: datetime, tz: str | None, said: Phrases = ENGLISH) -> str:
    """A calendar rule as a sentence."""
    words = [_calendar_days(rule, first, said), said.say("at", time=_clock(time))]
    return f"{' '.join([*words, *_bounds(rule.start, rule.end, said)])}, {_zone(tz, said)}"


def _zone(tz: str | None, said: Phrases) -> str:
    return said.say("zone", tz=tz) if tz and tz != "UTC" else "UTC"


def _clock(second: int) -> str:
    text = f"{second // 3600:02}:{second // 60 % 60:02}"
    return f"{text}:{second % 60:02}" if second % 60 else text


def _elapsed(seconds: int, said: Phrases) -> str:
    """5400 as "Every 1 hour 30 minutes"; a single unit of one as the bare word."""
    parts = []
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append((count, unit))
    if len(parts) == 1:
        return _every(*parts[0], said)
    return said.say("every", span=" ".join(said.say(unit, number=count) for count, unit in parts))


def _every(count: int, unit: str, said: Phrases) -> str:
    return said.say(f"each_{unit}") if count == 1 else said.say("every", span=said.say(unit, number=count))


def _bounds(start: date | int | None, end: date | int | None, said: Phrases) -> list[str]:
    bounds = (("from", start), ("until", end))
    return [said.say(key, bound=_bound(bound)) for key, bound in bounds if bound is not None]


def _bound(bound: date | int) -> str:
    if isinstance(bound, date):
        return bound.isoformat()
    return f"{datetime.fromtimestamp(bound, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _times(fields: CronFields, said: Phrases) -> str:
    seconds, minutes, hours = (field.values for field in (fields.second, fields.minute, fields.hour))
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        times = [hour * 3600 + minute * 60 + second for hour in hours for minute in minutes for second in seconds]
        return said.say("at_times", times=said.joined([_clock(time) for time in times]))
    words = [_cadence(seconds, minutes, said), _hours(hours, minutes, said)]
    sentence = " ".join(word for word in words if word)
    return sentence[0].upper() + sentence[1:]


def _cadence(seconds: list[int], minutes: list[int], said: Phrases) -> str:
    """How often within the hours."""
    if seconds == [0]:
        return _of_field("minute", minutes, said)
    second = _of_field("second", seconds, said)
    if len(minutes) == 60 and len(seconds) > 1:
        return second
    return said.say("second_of", seconds=second, minutes=_of_field("of_minute", minutes, said))


def _of_field(unit: str, values: list[int], said: Phrases) -> str:
    step = _even_step(values, 60)
    if step == 1:
        return said.say(f"{unit}_each")
    if step:
        return said.say(f"{unit}_step", number=step, nth=said.ordinal(step))
    return said.say(f"{unit}_{'one' if len(values) == 1 else 'many'}", values=said.listed(values))


def _even_step(values: list[int], size: int) -> int:
    """n, if the values are every nth from 0 and n divides the field, so that the rate is exact."""
    step = size // len(values)
    return step if len(values) > 1 and values == list(range(0, size, step)) and size % step == 0 else 0


def _hours(hours: list[int], minutes: list[int], said: Phrases) -> str:
    if len(hours) == 24:
        return said.say("hours_each") if len(minutes) == 1 or not _even_step(minutes, 60) else ""
    step = _even_step(hours, 24)
    if step:
        return said.say("hours_step_in" if len(minutes) == 60 else "hours_step_past", nth=said.ordinal(step))
    if hours == list(range(hours[0], hours[-1] + 1)):
        return said.say("hours_range", first=f"{hours[0]:02}", last=f"{hours[-1]:02}")
    return said.say("hours_many", values=said.listed(hours, "{:02}".format))


def _days(fields: CronFields, said: Phrases) -> str:
    dates, weekdays = _dates(fields.day_of_month, said), _weekdays(fields.day_of_week, said)
    if dates and weekdays:
        return said.say("on_either" if fields.is_either else "on_both", dates=dates, weekdays=weekdays)
    if dates or weekdays:
        return said.say("on", days=dates or weekdays)
    return said.say("daily") if len(fields.hour.values) < 24 else ""


def _dates(field: Field, said: Phrases) -> str:
    if field.is_star and field.mask.bit_count() == 31:
        return ""
    words = [_plain_dates(field.values, said)] if field.mask else []
    return said.joined(words + _special_dates(field, said), "or")


def _plain_dates(values: list[int], said: Phrases) -> str:
    step = values[1] - values[0] if len(values) > 3 else 1
    if step > 1 and values == list(range(values[0], 32, step)):
        return said.say("dates_step", nth=said.ordinal(step), first=said.ordinal(values[0]))
    return said.say("dates_one" if len(values) == 1 else "dates_many", values=said.listed(values))


def _special_dates(field: Field, said: Phrases) -> list[str]:
    words = [said.say("last_day")] if field.last & 1 else []
    words += [said.say("before_last", number=before) for before in range(1, 31) if field.last >> before & 1]
    words += [said.say("near", number=day) for day in range(1, 32) if field.near >> day & 1]
    words += [said.say("near_last")] if field.near_last & 1 else []
    return words + [
        said.say("near_before_last", number=before) for before in range(1, 31) if field.near_last >> before & 1
    ]


def _weekdays(field: Field, said: Phrases) -> str:
    if field.is_star and field.mask.bit_count() == 7:
        return ""
    words = []
    if field.mask:
        words.append(said.say("weekdays", values=said.listed(field.values, lambda day: said.name("days", day))))
    for day in range(7):
        places = [nth for nth in range(5) if field.nth >> 5 * day + nth & 1] + [_LAST] * (field.last >> day & 1)
        words += [said.say("nth_weekday", nth=said.name("nths", nth), day=said.name("days", day)) for nth in places]
    return said.joined(words, "or")


def _months(field: Field, said: Phrases) -> str:
    if field.mask.bit_count() == 12:
        return ""
    names = said.listed(field.values, lambda month: said.name("months", month - 1))
    return said.say("in_months", number=field.mask.bit_count(), values=names)


def _years(field: Field | None, said: Phrases) -> str:
    if field is None or field.text == "*":
        return ""
    years = said.listed(field.values, lambda year: str(year + FIRST_YEAR))
    return said.say("in_years", number=field.mask.bit_count(), values=years)


def _calendar_days(rule: CalendarRule, first: datetime, said: Phrases) -> str:
    every, month = _every(rule.step, rule.unit[:-1], said), said.name("months", first.month - 1)
    if rule.unit == "days":
        return every
    if rule.unit == "weeks":
        return said.say("weekly", every=every, day=said.name("days", first.isoweekday() % 7))
    period = "yearly" if rule.unit == "years" else "monthly"
    if rule.weekday is not None and rule.nth is not None:
        nth = said.name("nths", _LAST if rule.nth < 0 else rule.nth - 1)
        return said.say(f"{period}_nth", every=every, nth=nth, day=said.name("days", rule.weekday), month=month)
    if rule.month_end == "last":
        return said.say(f"{period}_last", every=every, month=month)
    sentence = said.say(period, every=every, nth=said.ordinal(first.day), month=month)
    if first.day <= 28 or (rule.unit == "years" and first.month != 2):
        return sentence
    return said.say("or_skipped" if rule.month_end == "skip" else "or_clamped", rule=sentence)
