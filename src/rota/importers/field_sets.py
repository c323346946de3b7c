"""Writes cron text for the sets of values of another system, whose day fields must both fit.

In Rota's cron, two restricted day fields are joined by "or", as in cron itself, unless one begins with a star.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rota.importers.found import UnsupportedItem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = {
    name.lower(): number
    for number, name in enumerate(
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), start=1
    )
}
MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY = (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)
_WEEKDAY_NAMES = {name.lower(): number for number, name in enumerate(WEEKDAYS)}
_STEP = re.compile(r"\*/(\d{1,4})")
_WEEKS = tuple(frozenset(range(first, min(first + 7, 32))) for first in (1, 8, 15, 22, 29))


def values_of(text: str, bounds: tuple[int, int], names: Mapping[str, int] | None = None) -> frozenset[int]:
    """The values of a field: numbers, names, ranges that may wrap, steps and lists."""
    first, last = bounds
    found: set[int] = set()
    try:
        for part in text.replace(" ", "").split(","):
            span, _, step = part.partition("/")
            low, _, high = span.partition("-")
            start = first if span == "*" else _number(low, names or {})
            end = _number(high, names or {}) if high else last if span == "*" or step else start
            if not (first <= start <= last and first <= end <= last):
                raise UnsupportedItem(f"field {text!r}: {part!r} is out of range {first}-{last}")
            rest = range(start, end + 1) if start <= end else [*range(start, last + 1), *range(first, end + 1)]
            found.update(list(rest)[:: int(step or 1)])
    except (KeyError, ValueError) as err:
        raise UnsupportedItem(f"field {text!r} is not understood") from err
    return frozenset(found)


def weekdays_of(text: str) -> frozenset[int]:
    """The weekdays of a field that counts from Sunday, which is 0 or 7."""
    return frozenset(number % 7 for number in values_of(text, (0, 7) if "7" in text else WEEKDAY, _WEEKDAY_NAMES))


def _number(text: str, names: Mapping[str, int]) -> int:
    return names[text.lower()[:3]] if text.isalpha() else int(text)


def field_text(values: Collection[int], bounds: tuple[int, int], original: str = "") -> str:
    """The shortest plain text of a set; `*/n` stays, because it fires in both passes of a repeated hour."""
    first, last = bounds
    if len(set(values)) == last - first + 1:
        return "*"
    step = _STEP.fullmatch(original)
    if step and 1 <= int(step.group(1)) <= last - first + 1:
        return original
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in _runs(sorted(set(values))))


def _runs(values: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and runs[-1][1] == value - 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def _weekday_text(weekdays: set[int]) -> str:
    """Names from Monday on, with three or more in a row as a range."""
    runs = [
        f"{WEEKDAYS[low]}-{WEEKDAYS[high]}" if high > low + 1 else ",".join(WEEKDAYS[low : high + 1])
        for low, high in _runs(sorted(weekdays - {0}))
    ]
    return ",".join([*runs, *(["SUN"] if 0 in weekdays else [])])


def day_texts(month_days: str, days: Collection[int], weekdays: Collection[int]) -> tuple[str, str]:
    """Both day fields, so that a day must fit both. Days of whole weeks become the nth weekday."""
    if len(set(weekdays)) == len(WEEKDAYS):
        return month_days, "*"
    names = [WEEKDAYS[number] for number in sorted(set(weekdays), key=lambda number: (number - 1) % 7)]
    if month_days.startswith("*"):
        return month_days, _weekday_text(set(weekdays))
    weeks = [number for number, week in enumerate(_WEEKS, start=1) if week <= set(days)]
    if frozenset().union(*(_WEEKS[number - 1] for number in weeks)) == frozenset(days):
        return "*", ",".join(f"{name}#{number}" for number in weeks for name in names)
    raise UnsupportedItem(
        f"it needs day-of-month {month_days} and weekday {','.join(names)} at once, which cron text can say for "
        "whole weeks only, such as days 1-7 and MON; check the weekday in the task"
    )
