"""Defines the phrases that the sentence of a rule is made from: in English here, in other languages by their
catalogues.

A phrase that is a mapping has a form for one and one for other numbers. A language that puts its prepositions elsewhere
writes them into other phrases: in German, `on` is empty and each day includes its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Phrase = str | list[str] | dict[str, str]

_TABLE: dict[str, Phrase] = {
    "days": ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    "months": [
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ],
    "nths": ["first", "second", "third", "fourth", "fifth", "last"],
    "ordinals": ["th", "st", "nd", "rd"],  # after 0 and 4 to 9, 1, 2, 3; the first one after 11, 12 and 13
    "and": "and",
    "or": "or",
    "through": "{first} through {last}",
    "zone": "{tz} time",
    "from": "from {bound}",
    "until": "until {bound}",
    "by_hand": "Only when it is started by hand",
    "once": "Once, on {date} at {time}",
    "each_second": "Every second",
    "each_minute": "Every minute",
    "each_hour": "Every hour",
    "each_day": "Every day",
    "each_week": "Every week",
    "each_month": "Every month",
    "each_quarter": "Every quarter",
    "each_year": "Every year",
    "every": "Every {span}",
    "second": {"one": "{n} second", "other": "{n} seconds"},
    "minute": {"one": "{n} minute", "other": "{n} minutes"},
    "hour": {"one": "{n} hour", "other": "{n} hours"},
    "day": {"one": "{n} day", "other": "{n} days"},
    "week": {"one": "{n} week", "other": "{n} weeks"},
    "month": {"one": "{n} month", "other": "{n} months"},
    "quarter": {"one": "{n} quarter", "other": "{n} quarters"},
    "year": {"one": "{n} year", "other": "{n} years"},
    "at": "at {time}",
    "at_times": "At {times}",
    "second_each": "every second",
    "second_step": "every {n} seconds",
    "second_one": "at second {values}",
    "second_many": "at seconds {values}",
    "minute_each": "every minute",
    "minute_step": "every {n} minutes",
    "minute_one": "at minute {values}",
    "minute_many": "at minutes {values}",
    "of_minute_each": "every minute",
    "of_minute_step": "every {n} minutes",
    "of_minute_one": "minute {values}",
    "of_minute_many": "minutes {values}",
    "second_of": "{seconds} of {minutes}",
    "hours_each": "past every hour",
    "hours_step_in": "in every {nth} hour from 00:00",
    "hours_step_past": "past every {nth} hour from 00:00",
    "hours_range": "from {first}:00 through {last}:59",
    "hours_many": "in the hours {values}",
    "on": "on {days}",
    "on_either": "on {dates} or on {weekdays} (either is enough)",
    "on_both": "on {dates} and on {weekdays} (both must match)",
    "daily": "every day",
    "dates_step": "every {nth} day of the month from the {first}",
    "dates_one": "day {values} of the month",
    "dates_many": "days {values} of the month",
    "last_day": "the last day of the month",
    "before_last": {
        "one": "{n} day before the last day of the month",
        "other": "{n} days before the last day of the month",
    },
    "near": "the weekday nearest day {n} of the month",
    "near_last": "the last weekday (Monday to Friday) of the month",
    "near_before_last": {
        "one": "the weekday nearest to {n} day before the last day of the month",
        "other": "the weekday nearest to {n} days before the last day of the month",
    },
    "weekdays": "{values}",
    "nth_weekday": "the {nth} {day} of the month",
    "in_months": {"one": "in {values}", "other": "in {values}"},
    "in_years": {"one": "in the year {values}", "other": "in the years {values}"},
    "weekly": "{every} on {day}",
    "monthly_nth": "{every} on the {nth} {day}",
    "yearly_nth": "{every} on the {nth} {day} of {month}",
    "monthly_last": "{every} on the last day of the month",
    "yearly_last": "{every} on the last day of {month}",
    "monthly": "{every} on the {nth}",
    "yearly": "{every} on the {nth} of {month}",
    "or_skipped": "{rule} (months without it are skipped)",
    "or_clamped": "{rule} (or the month's last day)",
}


class Phrases:
    """The phrases of one language."""

    def __init__(self, table: Mapping[str, Phrase], language: str) -> None:
        self.table = table
        self.language = language

    def __repr__(self) -> str:
        return f"Phrases({self.language!r})"

    def say(self, key: str, *, number: int | None = None, **values: object) -> str:
        """A phrase with its values; the number decides on its form, and is its `{n}`."""
        found = self.table[key]
        if isinstance(found, dict):
            found = found["one" if number == 1 else "other"]
        return str(found).format(n=number, **values)

    def name(self, key: str, index: int) -> str:
        """One of a list of names, such as a month's."""
        return self._names(key)[index]

    def ordinal(self, n: int) -> str:
        index = 0 if n % 100 in {11, 12, 13} or n % 10 > 3 else n % 10
        return f"{n}{self._names('ordinals')[index]}"

    def _names(self, key: str) -> list[str]:
        return cast("list[str]", self.table[key])  # a phrase used by index is a list in every language

    def joined(self, words: Sequence[str], last: str = "and") -> str:
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {self.table[last]} {words[-1]}"

    def listed(self, values: Sequence[int], word: Callable[[int], str] = str) -> str:
        """1, 2, 3, 7 as "1 through 3 and 7"."""
        runs: list[list[int]] = []
        for value in values:
            if runs and value == runs[-1][-1] + 1:
                runs[-1].append(value)
            else:
                runs.append([value])
        words: list[str] = []
        for run in runs:
            if len(run) > 2:
                words.append(self.say("through", first=word(run[0]), last=word(run[-1])))
            else:
                words += [word(value) for value in run]
        return self.joined(words)


ENGLISH = Phrases(_TABLE, "en")
