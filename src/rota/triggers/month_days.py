"""Computes the days of a month that match a cron expression: one bit mask per shape of month, made when first needed.

A month's days depend only on the weekday of its first and on its length, so 28 masks cover every month: day-of-month,
day-of-week, L, W, # and their "and" or "or" are decided once per shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.triggers.cron_text import CronFields

MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

SUNDAY, SATURDAY = 0, 6


class MonthDays:
    """The day masks of one expression; bit 0 is the first of the month."""

    __slots__ = ("_fields", "_masks")

    def __init__(self, fields: CronFields) -> None:
        self._fields = fields
        self._masks: dict[tuple[int, int], int] = {}

    def mask(self, first_weekday: int, length: int) -> int:
        """The matching days of a month of `length` days that begins on `first_weekday` (Sunday is 0)."""
        shape = (first_weekday, length)
        mask = self._masks.get(shape)
        if mask is None:
            mask = self._masks[shape] = self._compute(first_weekday, length)
        return mask

    def ever(self, month: int) -> bool:
        """Whether any month of that number has a matching day."""
        lengths = (28, 29) if month == 2 else (MONTH_LENGTHS[month - 1],)
        return any(self.mask(first, length) for first in range(7) for length in lengths)

    def _compute(self, first_weekday: int, length: int) -> int:
        by_date = self._by_date(first_weekday, length)
        by_weekday = self._by_weekday(first_weekday, length)
        mask = by_date | by_weekday if self._fields.is_either else by_date & by_weekday
        return mask & (1 << length) - 1

    def _by_date(self, first_weekday: int, length: int) -> int:
        field = self._fields.day_of_month
        mask = field.mask >> 1
        for before in range(length):
            if field.last >> before & 1:
                mask |= 1 << length - 1 - before
            if field.near_last >> before & 1:
                mask |= 1 << _nearest_weekday(length - before, first_weekday, length) - 1
        for day in range(1, length + 1):
            if field.near >> day & 1:
                mask |= 1 << _nearest_weekday(day, first_weekday, length) - 1
        return mask

    def _by_weekday(self, first_weekday: int, length: int) -> int:
        field = self._fields.day_of_week
        mask = 0
        for day in range(1, length + 1):
            weekday = (first_weekday + day - 1) % 7
            nth = (day - 1) // 7
            is_last = day + 7 > length
            matches = field.mask >> weekday | field.nth >> 5 * weekday + nth | (is_last and field.last >> weekday)
            mask |= (matches & 1) << day - 1
        return mask


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The Monday-to-Friday nearest to that day, without leaving the month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < length else day - 2
    return day
