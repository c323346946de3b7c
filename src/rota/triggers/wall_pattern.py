"""Finds the local seconds that match a cron expression, counted as integers, without a timezone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date
from typing import TYPE_CHECKING

from rota.errors import BadCron
from rota.sentences import sentence
from rota.triggers.cron_field import FIRST_YEAR
from rota.triggers.month_days import MONTH_LENGTHS, MonthDays

if TYPE_CHECKING:
    from rota.triggers.cron_text import CronFields

DAY = 86_400
MOST_TIMES = 1_440  # a table of times of day beyond this size would cost more memory than it saves time

_EPOCH = date(1970, 1, 1).toordinal()


# One month: its days as first <= day < end since the epoch, the mask of those that match, its year and number.
# A plain tuple, because the hot path makes one a month.
_Month = tuple[int, int, int, int, int]


class WallPattern:
    """The matching wall seconds of one cron expression. Immutable except for the last month used."""

    __slots__ = ("_days", "_month", "_months", "_per_day", "_times", "_years", "fields")

    def __init__(self, fields: CronFields) -> None:
        self.fields = fields
        self._days = MonthDays(fields)
        self._months = fields.month.mask
        self._years = fields.year.mask if fields.year else None
        self._times = _times_of_day(fields)
        self._per_day = self._times.count
        self._check_satisfiable()
        self._month = self._month_of(0)

    def after(self, wall: int) -> int | None:
        """The first match later than `wall`."""
        day, second = divmod(wall, DAY)
        month = self._month
        if not month[0] <= day < month[1]:
            month = self._month = self._month_of(day)
        rest = month[2] >> day - month[0]
        if rest & 1:
            time = self._times.after(second)
            if time >= 0:
                return wall - second + time
        rest >>= 1
        if rest:
            return (day + (rest & -rest).bit_length()) * DAY + self._times.first
        later = self._later_month(month)
        if later is None:
            return None
        self._month = later
        return (later[0] + (later[2] & -later[2]).bit_length() - 1) * DAY + self._times.first

    def before(self, wall: int) -> int | None:
        """The last match earlier than `wall`."""
        day, second = divmod(wall, DAY)
        first, end, mask, year, number = self._month_of(day)
        today = 1 << day - first
        if mask & today:
            time = self._times.before(second)
            if time >= 0:
                return wall - second + time
        rest = mask & today - 1
        if not rest:
            earlier = self._earlier_month((first, end, mask, year, number))
            if earlier is None:
                return None
            first, rest = earlier[0], earlier[2]
        return (first + rest.bit_length() - 1) * DAY + self._times.last

    def matches(self, wall: int) -> bool:
        return self.after(wall - 1) == wall

    def count(self, low: int, high: int) -> int:
        """How many matches lie in low <= wall < high."""
        if high <= low:
            return 0
        (first, early), (last, late) = divmod(low, DAY), divmod(high, DAY)
        whole = self._count_days(first, last) * self._per_day
        cut = self._times.below(early) if self._day_matches(first) else 0
        begun = self._times.below(late) if self._day_matches(last) else 0
        return whole - cut + begun

    def _count_days(self, day: int, end: int) -> int:
        """The matching days from `day` up to `end`, month by month."""
        total = 0
        while day < end:
            first, month_end, mask, _, _ = self._month_of(day)
            stop = min(end, month_end)
            window = (1 << stop - day) - 1
            total += (mask >> day - first & window).bit_count()
            day = stop
        return total

    def _day_matches(self, day: int) -> bool:
        first, _, mask, _, _ = self._month_of(day)
        return bool(mask >> day - first & 1)

    def _month_of(self, day: int) -> _Month:
        on = date.fromordinal(day + _EPOCH)
        first, length = day - on.day + 1, _length(on.year, on.month)
        mask = self._days.mask((first + 4) % 7, length) if self._allows(on.year, on.month) else 0
        return first, first + length, mask, on.year, on.month

    def _allows(self, year: int, month: int) -> bool:
        return bool(self._months >> month & 1) and self._allows_year(year)

    def _allows_year(self, year: int) -> bool:
        return self._years is None or (year >= FIRST_YEAR and bool(self._years >> year - FIRST_YEAR & 1))

    def _later_month(self, month: _Month) -> _Month | None:
        """The next month that has a match; each begins where the one before it ends."""
        _, first, _, year, number = month
        end_year, months = self._end_year(), self._months
        while True:
            number += 1
            if number == 13:
                number, year = 1, year + 1
                if year >= end_year:
                    return None
            length = _length(year, number)
            if months >> number & 1 and self._allows_year(year):
                mask = self._days.mask((first + 4) % 7, length)
                if mask:
                    return first, first + length, mask, year, number
            first += length

    def _earlier_month(self, month: _Month) -> _Month | None:
        """The month before that has a match."""
        end, _, _, year, number = month
        first_year = 1 if self._years is None else FIRST_YEAR
        if year > self._end_year():  # far beyond the last year that is allowed
            year, number = self._end_year(), 1
            end = date(year, 1, 1).toordinal() - _EPOCH
        while True:
            number -= 1
            if number == 0:
                number, year = 12, year - 1
                if year < first_year:
                    return None
            length = _length(year, number)
            end -= length
            if self._allows(year, number):
                mask = self._days.mask((end + 4) % 7, length)
                if mask:
                    return end, end + length, mask, year, number

    def _end_year(self) -> int:
        return 10_000 if self._years is None else FIRST_YEAR + self._years.bit_length()

    def _check_satisfiable(self) -> None:
        """Refuse a pattern that can never fire. This is exact, because a month's mask depends on its shape alone."""
        fields = self.fields
        if self._years is None:
            fires = any(self._days.ever(month) for month in fields.month.values)
        else:
            fires = self._later_month((0, 0, 0, FIRST_YEAR - 1, 12)) is not None
        if not fires:
            raise BadCron(
                sentence(
                    "cron.never",
                    "this schedule can never fire: no date satisfies day-of-month '{days}', day-of-week "
                    "'{weekdays}' and the month {year}fields",
                    days=fields.day_of_month.text,
                    weekdays=fields.day_of_week.text,
                    year="and year " if fields.year else "",
                ),
                text=fields.text,
            )


class _Times:
    """The times of one day as a sorted table of seconds."""

    __slots__ = ("_table", "count", "first", "last")

    def __init__(self, table: list[int]) -> None:
        self._table = table
        self.count = len(table)
        self.first = table[0]
        self.last = table[-1]

    def after(self, second: int) -> int:
        """The first time later than `second`, or -1."""
        index = bisect_right(self._table, second)
        return self._table[index] if index < self.count else -1

    def before(self, second: int) -> int:
        """The last time earlier than `second`, or -1."""
        index = bisect_left(self._table, second)
        return self._table[index - 1] if index else -1

    def below(self, second: int) -> int:
        """How many times are earlier than `second`."""
        return bisect_left(self._table, second)


class _DenseTimes(_Times):
    """The times of a day that has too many for one table: minutes, each with the same seconds."""

    __slots__ = ("_minutes", "_seconds")

    def __init__(self, minutes: list[int], seconds: list[int]) -> None:
        self._minutes = _Times(minutes)
        self._seconds = _Times(seconds)
        self.count = len(minutes) * len(seconds)
        self.first = minutes[0] * 60 + seconds[0]
        self.last = minutes[-1] * 60 + seconds[-1]

    def after(self, second: int) -> int:
        minute, rest = divmod(second, 60)
        if self._minutes.after(minute - 1) == minute:
            later = self._seconds.after(rest)
            if later >= 0:
                return minute * 60 + later
        minute = self._minutes.after(minute)
        return minute * 60 + self._seconds.first if minute >= 0 else -1

    def before(self, second: int) -> int:
        minute, rest = divmod(second, 60)
        if self._minutes.before(minute + 1) == minute:
            earlier = self._seconds.before(rest)
            if earlier >= 0:
                return minute * 60 + earlier
        minute = self._minutes.before(minute)
        return minute * 60 + self._seconds.last if minute >= 0 else -1

    def below(self, second: int) -> int:
        minute, rest = divmod(second, 60)
        whole = self._minutes.below(minute) * self._seconds.count
        begun = self._minutes.after(minute - 1) == minute
        return whole + (self._seconds.below(rest) if begun else 0)


def _times_of_day(fields: CronFields) -> _Times:
    minutes = [hour * 60 + minute for hour in fields.hour.values for minute in fields.minute.values]
    seconds = fields.second.values
    if len(minutes) * len(seconds) > MOST_TIMES:
        return _DenseTimes(minutes, seconds)
    return _Times([minute * 60 + second for minute in minutes for second in seconds])


def _length(year: int, month: int) -> int:
    is_leap = month == 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return MONTH_LENGTHS[month - 1] + is_leap
