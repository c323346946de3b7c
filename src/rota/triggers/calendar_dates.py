"""Computes calendar dates: the k-th date of "every 2 weeks", "every month on the 31st", "the second Tuesday".

Every date is counted from the anchor, never from the date before it, so month ends do not drift: 31 January, 28
February, 31 March. Days are integers since 1970-01-01; nothing here knows a timezone.
"""

from __future__ import annotations

from array import array
from datetime import date
from itertools import accumulate
from math import gcd

from rota.errors import BadInterval
from rota.sentences import sentence
from rota.triggers.month_days import MONTH_LENGTHS

EPOCH = date(1970, 1, 1).toordinal()
LAST_MONTH = 9999 * 12 + 11  # months are counted as year x 12 + month - 1
BEYOND = 4_000_000  # a day past the last that a date can name

_CYCLE = 400 * 12  # after 400 years the calendar repeats, weekdays included


class DayDates:
    """Every n days (or weeks, as multiples of 7) from an anchor day."""

    __slots__ = ("anchor", "step")

    def __init__(self, anchor: int, step: int, weekday: int | None = None) -> None:
        self.anchor = anchor if weekday is None else anchor + (weekday - (anchor + 4)) % 7
        self.step = step

    def index_near(self, day: int) -> int:
        """A k whose date is at most one step away from `day`, on the early side."""
        return max(0, (day - self.anchor) // self.step - 1)

    def day(self, k: int) -> int | None:
        return self.anchor + k * self.step

    def order(self, k: int) -> int:
        """The position of k in time, also if it has no date."""
        return self.anchor + k * self.step

    def count_below(self, k: int) -> int:
        """How many of 0 … k-1 have a date."""
        return k


class MonthDates:
    """Every n months from an anchor date, on its day of the month or on an nth weekday."""

    __slots__ = ("_day", "_month", "_month_end", "_nth", "_step", "_valid", "_weekday", "anchor")

    def __init__(
        self, anchor: int, step: int, *, month_end: str, weekday: int | None = None, nth: int | None = None
    ) -> None:
        on = date.fromordinal(anchor + EPOCH)
        self.anchor = anchor
        self._month = on.year * 12 + on.month - 1
        self._day = on.day
        self._step = step
        self._month_end = month_end
        self._weekday = weekday
        self._nth = nth  # 1 to 5, or -1 for the last
        self._valid: array[int] | None = None

    def index_near(self, day: int) -> int:
        on = date.fromordinal(day + EPOCH)
        return max(0, (on.year * 12 + on.month - 1 - self._month) // self._step - 1)

    def day(self, k: int) -> int | None:
        """The k-th date, or None if that month has none (no 31st, no fifth Friday, or before the anchor)."""
        month = self._month + k * self._step
        if month > LAST_MONTH:
            return None
        first, length = _first_and_length(month)
        found = self._in_month(first, length)
        return None if found is None or found < self.anchor else found

    def order(self, k: int) -> int:
        month = self._month + k * self._step
        if month > LAST_MONTH:
            return BEYOND
        first, length = _first_and_length(month)
        found = self._in_month(first, length)
        return first + length - 1 if found is None else found

    def count_below(self, k: int) -> int:
        before_anchor = int(
            k > 0 and self.day(0) is None and self._in_month(*_first_and_length(self._month)) is not None
        )
        if not self._may_miss():
            return k - before_anchor
        table = self._valid_table()
        cycles, rest = divmod(k, len(table) - 1)
        return cycles * table[-1] + table[rest] - before_anchor

    def check_satisfiable(self) -> None:
        if self._may_miss() and not self._valid_table()[-1]:
            raise BadInterval(
                sentence("calendar.never", "this schedule can never fire: no month that it counts has such a day")
            )

    def _in_month(self, first: int, length: int) -> int | None:
        if self._weekday is not None:
            return _nth_weekday(first, length, self._weekday, self._nth or 1)
        if self._month_end == "last":
            return first + length - 1
        if self._day > length and self._month_end == "skip":
            return None
        return first + min(self._day, length) - 1

    def _may_miss(self) -> bool:
        if self._weekday is not None:
            return self._nth == 5
        return self._month_end == "skip" and self._day > 28

    def _valid_table(self) -> array[int]:
        """How many of the first k months of a 400-year cycle have the day; made when first counted."""
        if self._valid is None:
            period = _CYCLE // gcd(self._step, _CYCLE)
            months = (_early_twin(self._month + k * self._step) for k in range(period))
            found = (self._in_month(*_first_and_length(month)) is not None for month in months)
            self._valid = array("H", accumulate(found, initial=0))
        return self._valid


def _early_twin(month: int) -> int:
    """The month of the years 400 to 799 that has the same days."""
    return month % _CYCLE + _CYCLE


def _first_and_length(month: int) -> tuple[int, int]:
    year, index = divmod(month, 12)
    is_leap = index == 1 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return date(year, index + 1, 1).toordinal() - EPOCH, MONTH_LENGTHS[index] + is_leap


def _nth_weekday(first: int, length: int, weekday: int, nth: int) -> int | None:
    """The nth (or, for -1, the last) such weekday; Sunday is 0."""
    offset = (weekday - (first + 4)) % 7
    if nth == -1:
        return first + offset + (length - 1 - offset) // 7 * 7
    day = offset + 7 * (nth - 1)
    return first + day if day < length else None
