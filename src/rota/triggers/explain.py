"""Sentences: what a trigger does, in English, with "and" and "or" where cron readers differ."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from rota.triggers.cron_field import FIRST_YEAR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.triggers.calendar_rule import CalendarRule
    from rota.triggers.cron_field import Field
    from rota.triggers.cron_text import CronFields

DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NTH = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last"}

_MOST_TIMES = 6  # a longer list of times is described by its fields


def explain_cron(fields: CronFields, tz: str | None) -> str:
    """A cron expression as a sentence."""
    parts = [_times(fields), _days(fields), _months(fields.month), _years(fields.year)]
    sentence = " ".join(part for part in parts if part)
    return f"{sentence}, {zone_words(tz)}"


def explain_every(interval: int, start: date | int | None, end: date | int | None, tz: str | None) -> str:
    """An elapsed interval as a sentence."""
    words = [f"Every {elapsed_words(interval)}"]
    if start is not None:
        words.append(f"from {_bound_words(start)}")
    if end is not None:
        words.append(f"until {_bound_words(end)}")
    sentence = " ".join(words)
    return f"{sentence}, {zone_words(tz)}" if isinstance(start, date) or isinstance(end, date) else sentence


def explain_once(at: datetime, tz: str | None) -> str:
    return f"Once, on {at:%Y-%m-%d} at {at:%H:%M:%S}, {zone_words(tz)}"


def explain_calendar(rule: CalendarRule, time: int, first: datetime, tz: str | None) -> str:
    """A calendar rule as a sentence."""
    words = [_calendar_days(rule, first), f"at {time_words(time)}"]
    if rule.start is not None:
        words.append(f"from {_bound_words(rule.start)}")
    if rule.end is not None:
        words.append(f"until {_bound_words(rule.end)}")
    return f"{' '.join(words)}, {zone_words(tz)}"


def zone_words(tz: str | None) -> str:
    return f"{tz} time" if tz and tz != "UTC" else "UTC"


def time_words(second: int) -> str:
    text = f"{second // 3600:02}:{second // 60 % 60:02}"
    return f"{text}:{second % 60:02}" if second % 60 else text


def elapsed_words(seconds: int) -> str:
    """5400 as "1 hour 30 minutes"; a single unit of one as the bare word."""
    parts = []
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append((count, unit))
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    return " ".join(f"{count} {unit}{'s' * (count > 1)}" for count, unit in parts)


def join_words(words: Sequence[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def ordinal(n: int) -> str:
    suffix = "th" if n % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def _times(fields: CronFields) -> str:
    seconds, minutes, hours = (field.values for field in (fields.second, fields.minute, fields.hour))
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        times = [hour * 3600 + minute * 60 + second for hour in hours for minute in minutes for second in seconds]
        return f"At {join_words([time_words(time) for time in times])}"
    words = []
    if seconds != [0]:
        words.append(_cadence(seconds, 60, "second"))
    if len(minutes) < 60 or len(seconds) == 1:
        minute = _cadence(minutes, 60, "minute")
        words.append(minute.removeprefix("at ") if words else minute)
    sentence = " of ".join(word for word in words if word) or "every second"
    return _capital(f"{sentence}{_hours_words(hours, minutes)}")


def _cadence(values: list[int], size: int, unit: str) -> str:
    step = _even_step(values, size)
    if step == 1:
        return f"every {unit}"
    if step:
        return f"every {step} {unit}s"
    if len(values) == 1:
        return f"at {unit} {values[0]}"
    return f"at {unit}s {_list(values, str)}"


def _even_step(values: list[int], size: int) -> int:
    """n, where the values are every nth from 0 and n divides the field: a rate that people can trust."""
    step = size // len(values)
    return step if len(values) > 1 and values == list(range(0, size, step)) and size % step == 0 else 0


def _hours_words(hours: list[int], minutes: list[int]) -> str:
    if len(hours) == 24:
        return " past every hour" if len(minutes) == 1 or not _even_step(minutes, 60) else ""
    step = _even_step(hours, 24)
    if step:
        return f" {'in' if len(minutes) == 60 else 'past'} every {ordinal(step)} hour from 00:00"
    if hours == list(range(hours[0], hours[-1] + 1)):
        return f" from {hours[0]:02}:00 through {hours[-1]:02}:59"
    return f" in the hours {_list(hours, '{:02}'.format)}"


def _days(fields: CronFields) -> str:
    date_words = _day_of_month(fields.day_of_month)
    weekday_words = _day_of_week(fields.day_of_week)
    if date_words and weekday_words:
        if fields.is_either:
            return f"on {date_words} or on {weekday_words} (either is enough)"
        return f"on {date_words} and on {weekday_words} (both must match)"
    if date_words or weekday_words:
        return f"on {date_words or weekday_words}"
    return "every day" if len(fields.hour.values) < 24 else ""


def _day_of_month(field: Field) -> str:
    if field.is_star and field.mask.bit_count() == 31:
        return ""
    words = [_plain_days(field.values)] if field.mask else []
    return join_words(words + _special_days(field), "or")


def _plain_days(values: list[int]) -> str:
    step = values[1] - values[0] if len(values) > 3 else 1
    if step > 1 and values == list(range(values[0], 32, step)):
        return f"every {ordinal(step)} day of the month from the {ordinal(values[0])}"
    return f"day{'s' * (len(values) > 1)} {_list(values, str)} of the month"


def _special_days(field: Field) -> list[str]:
    words = []
    for before in range(31):
        if field.last >> before & 1:
            unit = f"{before} day{'s' * (before > 1)} before "
            words.append(f"{unit if before else ''}the last day of the month")
    words += [f"the weekday nearest day {day} of the month" for day in range(1, 32) if field.near >> day & 1]
    if field.near_last & 1:
        words.append("the last weekday (Monday to Friday) of the month")
    for before in range(1, 31):
        if field.near_last >> before & 1:
            unit = f"{before} day{'s' * (before > 1)} before"
            words.append(f"the weekday nearest to {unit} the last day of the month")
    return words


def _day_of_week(field: Field) -> str:
    if field.is_star and field.mask.bit_count() == 7:
        return ""
    words = []
    if field.mask:
        words.append(_list(field.values, lambda day: DAY_NAMES[day]))
    for day in range(7):
        words += [
            f"the {NTH[nth]} {DAY_NAMES[day]} of the month" for nth in range(1, 6) if field.nth >> 5 * day + nth - 1 & 1
        ]
        if field.last >> day & 1:
            words.append(f"the last {DAY_NAMES[day]} of the month")
    return join_words(words, "or")


def _months(field: Field) -> str:
    if field.mask.bit_count() == 12:
        return ""
    return f"in {_list(field.values, lambda month: MONTH_NAMES[month - 1])}"


def _years(field: Field | None) -> str:
    if field is None or field.text == "*":
        return ""
    return f"in the year{'s' * (field.mask.bit_count() > 1)} {_list(field.values, lambda v: str(v + FIRST_YEAR))}"


def _list(values: Sequence[int], word: Callable[[int], str]) -> str:
    """1, 2, 3, 7 as "1 through 3 and 7"."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words: list[str] = []
    for run in runs:
        words += [f"{word(run[0])} through {word(run[-1])}"] if len(run) > 2 else [word(value) for value in run]
    return join_words(words)


def _calendar_days(rule: CalendarRule, first: datetime) -> str:
    unit = rule.unit[:-1]
    every = f"Every {unit}" if rule.step == 1 else f"Every {rule.step} {rule.unit}"
    if rule.unit == "days":
        return every
    if rule.unit == "weeks":
        return f"{every} on {first:%A}"
    if rule.weekday is not None and rule.nth is not None:
        day = f"the {NTH[rule.nth]} {DAY_NAMES[rule.weekday]}"
        return f"{every} on {day}" if rule.unit != "years" else f"{every} on {day} of {first:%B}"
    return f"{every} on {_month_day(rule, first)}"


def _month_day(rule: CalendarRule, first: datetime) -> str:
    within = f" of {first:%B}" if rule.unit == "years" else ""
    if rule.month_end == "last":
        return f"the last day{within or ' of the month'}"
    day = f"the {ordinal(first.day)}{within}"
    if first.day <= 28 or (within and first.month != 2):
        return day
    instead = "months without it are skipped" if rule.month_end == "skip" else "or the month's last day"
    return f"{day} ({instead})"


def _bound_words(bound: date | int) -> str:
    if isinstance(bound, date):
        return bound.isoformat()
    return f"{datetime.fromtimestamp(bound, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
