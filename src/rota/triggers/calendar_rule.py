"""Reads and checks the parts of a calendar trigger apart from its zone."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING, NamedTuple

from rota.errors import BadInterval
from rota.sentences import sentence
from rota.triggers.bounds import Bound, bound_text, check_order
from rota.triggers.cron_field import WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

MONTHS_IN = {"months": 1, "quarters": 3, "years": 12}
UNITS = ("days", "weeks", *MONTHS_IN)
MONTH_ENDS = ("clamp", "skip", "last")
MOST = 10_000  # a larger count of days or months is a typing mistake


class CalendarRule(NamedTuple):
    """The parts of a calendar trigger, apart from its zone."""

    unit: str
    step: int
    at: int | None  # second of the day; None: the start's own time
    start: Bound | None
    end: Bound | None
    weekday: int | None  # Sunday is 0
    nth: int | None  # 1 to 5, -1 for the last
    month_end: str


def rule_parts(rule: CalendarRule) -> Iterator[str]:
    yield f"{rule.unit}={rule.step}"
    if rule.at is not None:
        yield f"at={_time_text(rule.at)}"
    if rule.start is not None:
        yield f"start={bound_text(rule.start)}"
    if rule.end is not None:
        yield f"end={bound_text(rule.end)}"
    if rule.weekday is not None:
        yield f"on={WEEKDAYS[rule.weekday].lower()}"
    if rule.nth is not None:
        yield f"nth={'last' if rule.nth == -1 else rule.nth}"
    if rule.month_end != "clamp":
        yield f"month_end={rule.month_end}"


def _time_text(second: int) -> str:
    minutes, seconds = divmod(second, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def read_unit(given: dict[str, int | None]) -> tuple[str, int]:
    named = [(unit, count) for unit, count in given.items() if count is not None]
    if len(named) != 1:
        got = " and ".join(unit for unit, _ in named) or "none"
        raise BadInterval(
            sentence(
                "calendar.one_unit",
                "calendar() takes exactly one of days, weeks, months, quarters and years, got {got}",
                got=got,
            )
        )
    unit, count = named[0]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
        raise BadInterval(
            sentence(
                "calendar.count",
                "{unit}={count!r}: the count must be a whole number from 1 to {most}",
                unit=unit,
                count=count,
                most=MOST,
            )
        )
    return unit, count


def read_time(at: object) -> int | None:
    if at is None:
        return None
    if isinstance(at, str):
        at = _time_from_text(at)
    if not isinstance(at, time) or at.tzinfo is not None or at.microsecond:
        raise BadInterval(
            sentence("calendar.wall", "at={at!r} must be a wall time in whole seconds, as in at='00:05'", at=at)
        )
    return at.hour * 3600 + at.minute * 60 + at.second


def _time_from_text(text: str) -> time:
    parts = text.split(":")
    digits = all(part.isascii() and part.isdigit() for part in parts)
    if len(parts) in {2, 3} and digits and len(parts[0]) in {1, 2} and all(len(part) == 2 for part in parts[1:]):
        hour, minute, second = (int(part) for part in [*parts, "0"][:3])
        if hour < 24 and minute < 60 and second < 60:
            return time(hour, minute, second)
    raise BadInterval(
        sentence("calendar.time", "at='{text}' is not a time of day", text=text[:20]),
        text=text,
        fix=sentence("calendar.time_fix", "write it as '00:05' or '23:59:59'"),
    )


def read_weekday(on: object) -> int | None:
    if on is None:
        return None
    name = on[:3].upper() if isinstance(on, str) else ""
    if name not in WEEKDAYS or not isinstance(on, str) or on.lower() not in _weekday_spellings():
        raise BadInterval(
            sentence("calendar.weekday", "on={on!r} is not a weekday", on=on),
            fix=sentence("calendar.weekday_fix", "write it as 'mon', 'tue', … 'sun'"),
        )
    return WEEKDAYS.index(name)


def _weekday_spellings() -> set[str]:
    long = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    return {*long, *(name.lower() for name in WEEKDAYS)}


def read_nth(nth: object) -> int | None:
    if nth is None:
        return None
    if nth == "last":
        return -1
    if isinstance(nth, bool) or not isinstance(nth, int) or not 1 <= nth <= 5:
        raise BadInterval(sentence("calendar.nth", "nth={nth!r} must be 1 to 5 or 'last'", nth=nth))
    return nth


def check_rule(rule: CalendarRule) -> None:
    """Refuse parts that do not fit together. Each error shows what to write instead."""
    by_month = rule.unit in MONTHS_IN
    if rule.month_end not in MONTH_ENDS:
        raise BadInterval(
            sentence(
                "calendar.month_end",
                "month_end={month_end!r} must be one of {known}",
                month_end=rule.month_end,
                known=", ".join(MONTH_ENDS),
            )
        )
    if rule.nth is not None and rule.weekday is None:
        raise BadInterval(
            sentence("calendar.nth_weekday", "nth= needs a weekday"),
            fix=sentence("calendar.nth_weekday_fix", "say which, as in on='tue', nth=2"),
        )
    if rule.nth is not None and not by_month:
        raise BadInterval(
            sentence(
                "calendar.nth_unit",
                "nth= counts weekdays within a month, so it does not go with {unit}=",
                unit=rule.unit,
            )
        )
    if rule.weekday is not None and by_month and rule.nth is None:
        raise BadInterval(
            sentence("calendar.on_nth", "on= with {unit}= needs nth=", unit=rule.unit),
            fix=sentence("calendar.on_nth_fix", "say which one, as in nth=2 or nth='last'"),
        )
    if rule.weekday is not None and rule.unit == "days":
        raise BadInterval(
            sentence("calendar.on_days", "on= does not go with days="),
            fix=sentence("calendar.on_days_fix", "use weeks=1, on='tue'"),
        )
    if rule.month_end != "clamp" and (not by_month or rule.weekday is not None):
        raise BadInterval(
            sentence(
                "calendar.month_end_unit",
                "month_end= is about days of the month, so it goes with months, quarters or years alone",
            )
        )
    check_order(rule.start, rule.end)
