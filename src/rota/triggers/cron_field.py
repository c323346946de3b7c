"""Reads one field of a cron expression: its text becomes a bit mask, or an error that names field, text and reason."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from rota.errors import CRON_FIELDS, BadCronField
from rota.sentences import Said, sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
FIRST_YEAR, LAST_YEAR = 1970, 2199


class Field(NamedTuple):
    """The values that one field allows. Bits of `mask` are values; years count from 1970, weekdays from Sunday."""

    text: str
    mask: int
    is_star: bool
    last: int = 0  # day-of-month: bit n is L-n; day-of-week: bit d is "the last d of the month"
    near: int = 0  # day-of-month: bit n is nW
    near_last: int = 0  # day-of-month: bit n is L-nW, bit 0 is LW
    nth: int = 0  # day-of-week: bit 5 * d + n - 1 is "the nth d of the month"

    @property
    def values(self) -> list[int]:
        return [value for value in range(self.mask.bit_length()) if self.mask >> value & 1]


class FieldKind(NamedTuple):
    """The rules of one field: its bounds, its names, and how the numbers people write become bits."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hint: Said = ""  # follows "is not a number"
    bounds: Said = ""  # follows "is out of range", if the bounds alone would mislead
    zero: int = 0  # the number that is bit 0
    cycle: int = 0  # the length of a wrapped range's circle; 0: ranges do not wrap

    @property
    def size(self) -> int:
        return self.cycle or self.high - self.low + 1

    def bit(self, number: int) -> int:
        return (number - self.zero) % self.cycle if self.cycle == 7 else number - self.zero

    def shown(self, number: int) -> str:
        return WEEKDAYS[self.bit(number)] if self.cycle == 7 else str(number)


SECOND = FieldKind("second", 0, 59, cycle=60)
MINUTE = FieldKind("minute", 0, 59, cycle=60)
HOUR = FieldKind("hour", 0, 23, cycle=24)
DAY_OF_MONTH = FieldKind(
    "day-of-month", 1, 31, cycle=31, hint=sentence("cron.days", "days are 1-31, L, L-3, 15W, LW or L-3W")
)
MONTH = FieldKind(
    "month", 1, 12, MONTHS, hint=sentence("cron.months", "months are 1-12 or JAN-DEC (three letters)"), cycle=12
)
YEAR = FieldKind("year", FIRST_YEAR, LAST_YEAR, zero=FIRST_YEAR)
UNIX_WEEKDAY = FieldKind(
    "day-of-week",
    0,
    7,
    WEEKDAYS,
    hint=sentence("cron.weekdays", "days are 0-7 or SUN-SAT (three letters)"),
    bounds=sentence("cron.weekday_range", " 0-7 (0 and 7 are Sunday)"),
    cycle=7,
)
QUARTZ_WEEKDAY = FieldKind(
    "day-of-week",
    1,
    7,
    WEEKDAYS,
    hint=sentence("cron.quartz_weekdays", "days are 1-7 with SUN=1, or SUN-SAT (three letters)"),
    bounds=sentence("cron.quartz_range", "; Quartz counts 1-7 with SUN=1 (or use SUN-SAT)"),
    zero=1,
    cycle=7,
)


def parse_field(text: str, kind: FieldKind) -> Field:
    """Read one field; raise BadCronField if it has not exactly one meaning.

    A day field counts as a star when its text begins with one, as in Debian's cron. A time field counts as a star when
    any of its items does.
    """
    is_day = kind.name.startswith("day-of")
    if text == "?" and is_day:
        return Field("?", _full_mask(kind), is_star=True)
    fields = [_Item(item, text, kind).parse() for item in text.split(",")]
    return Field(
        text=",".join(field.text for field in fields),
        mask=_union(field.mask for field in fields),
        is_star=fields[0].is_star if is_day else any(field.is_star for field in fields),
        last=_union(field.last for field in fields),
        near=_union(field.near for field in fields),
        near_last=_union(field.near_last for field in fields),
        nth=_union(field.nth for field in fields),
    )


class _Item:
    """One item of a field's list, while it is being read."""

    def __init__(self, item: str, whole: str, kind: FieldKind) -> None:
        self.item = item.upper()
        self.shown = item
        self.whole = whole
        self.kind = kind

    def parse(self) -> Field:
        if not self.item:
            raise self.bad(sentence("cron.empty", "empty item (two commas, or a comma at the end)"))
        if "?" in self.item:
            raise self.bad(sentence("cron.alone", "'?' is only allowed alone in day-of-month or day-of-week"))
        special = None
        if self.kind is DAY_OF_MONTH:
            special = self.special_day()
        elif self.kind.cycle == 7:
            special = self.special_weekday()
        return special or self.plain()

    def plain(self) -> Field:
        """`*`, `5`, `1-5`, each with an optional `/step`."""
        base, slash, step_text = self.item.partition("/")
        step = self.step(step_text) if slash else 1
        suffix = f"/{step}" if slash else ""
        if base == "*":
            numbers = range(self.kind.low, self.kind.low + self.kind.size, step)
            return self.field("*" + suffix, numbers, is_star=True)
        if "-" in base:
            return self.span(base, step, suffix)
        first = self.number(base)
        if not slash:
            return self.field(self.kind.shown(first), [first])
        if self.kind is UNIX_WEEKDAY:
            first %= 7  # an open end begins at Sunday the 0th, not at the 7th
        numbers = range(first, max(self.top(), first) + 1, step)
        return self.field(self.kind.shown(first) + suffix, numbers, is_star=self.counts_as_star(first, self.top()))

    def span(self, base: str, step: int, suffix: str) -> Field:
        if base.count("-") > 1:
            raise self.bad(sentence("cron.dashes", "'{base}' has more than one '-'", base=base))
        first, last = (self.number(end) for end in base.split("-"))
        length = last - first
        if length < 0:
            if not self.kind.cycle:
                raise self.bad(
                    sentence("cron.backwards", "'{base}' runs backwards", base=base),
                    fix=sentence("cron.years_fix", "years do not wrap"),
                )
            length += self.kind.cycle
        numbers = range(first, first + length + 1, step)
        return self.field(
            self.span_text(first, last, length, suffix), numbers, is_star=self.counts_as_star(first, last)
        )

    def span_text(self, first: int, last: int, length: int, suffix: str) -> str:
        if self.kind.cycle == 7 and length == 7:
            return f"SUN-SAT{suffix}"
        if length == 0:
            return self.kind.shown(first)
        return f"{self.kind.shown(first)}-{self.kind.shown(last)}{suffix}"

    def field(self, text: str, numbers: range | list[int], *, is_star: bool = False) -> Field:
        low, size = self.kind.low, self.kind.size
        mask = 0
        for number in numbers:
            mask |= 1 << self.kind.bit(low + (number - low) % size if self.kind.cycle else number)
        return Field(text, mask, is_star)

    def counts_as_star(self, first: int, last: int) -> bool:
        """`0/n` and `0-59` mean "every" as `*` does; in the day fields only `*` itself does (as in Debian's cron)."""
        is_time = self.kind in {SECOND, MINUTE, HOUR}
        return is_time and first == self.kind.low and last == self.kind.high

    def top(self) -> int:
        """The last value of an open-ended `a/n`: Saturday, not the second Sunday."""
        return 6 if self.kind is UNIX_WEEKDAY else self.kind.high

    def step(self, text: str) -> int:
        if not _is_digits(text) or int(text) < 1:
            raise self.bad(sentence("cron.step", "step '{text}' must be a whole number from 1", text=text[:20]))
        step = int(text)
        if step > self.kind.size:
            bounds = f"{self.kind.low}-{self.kind.low + self.kind.size - 1}"  # a week has seven days, 0 or 7 is Sunday
            reason = sentence(
                "cron.step_large",
                "step {step} is larger than the field ({bounds}), so only one value would ever match",
                step=step,
                bounds=bounds,
            )
            raise self.bad(reason, fix=sentence("cron.step_fix", "for a fixed interval use '@every'"))
        return step

    def number(self, text: str) -> int:
        """A number or a name, checked against the field's bounds."""
        kind = self.kind
        if text in kind.names:
            return kind.names.index(text) + max(kind.zero, kind.low)
        if text.isascii() and text.isdigit() and len(text) > 4:
            raise self.bad(
                sentence("cron.digits", "'{text}' is too long a number; at most 4 digits are read", text=text[:20])
            )
        if not _is_digits(text):
            bounds = kind.hint or sentence(
                "cron.bounds",
                "{name}s are {low}-{high}",
                name=CRON_FIELDS.get(kind.name, kind.name),
                low=kind.low,
                high=kind.high,
            )
            raise self.bad(
                sentence("cron.not_number", "'{text}' is not a number", text=text[:20] or self.shown), fix=bounds
            )
        number = int(text)
        if not kind.low <= number <= kind.high:
            bounds = kind.bounds or f" {kind.low}-{kind.high}"
            raise self.bad(sentence("cron.range", "{number} is out of range{bounds}", number=number, bounds=bounds))
        return number

    def special_day(self) -> Field | None:
        """`L`, `L-3`, `LW`, `L-3W`, `15W`."""
        item = self.item
        if item == "L":
            return Field("L", 0, is_star=False, last=1)
        if item == "LW":
            return Field("LW", 0, is_star=False, near_last=1)
        if item.startswith("L-"):
            return self.before_last(item[2:])
        if not item.endswith("W"):
            return None
        if not _is_digits(item[:-1]):
            raise self.bad(sentence("cron.w", "'W' needs a single day before it (15W) or LW"))
        day = self.number(item[:-1])
        return Field(f"{day}W", 0, is_star=False, near=1 << day)

    def before_last(self, text: str) -> Field:
        digits = text.removesuffix("W")
        if not _is_digits(digits) or not 1 <= int(digits) <= 30:
            raise self.bad(
                sentence(
                    "cron.before_last",
                    "'L-{text}': the days before the last must be 1-30 (L-3, or L-3W)",
                    text=text[:20],
                )
            )
        days = int(digits)
        if digits != text:
            return Field(f"L-{days}W", 0, is_star=False, near_last=1 << days)
        return Field(f"L-{days}", 0, is_star=False, last=1 << days)

    def special_weekday(self) -> Field | None:
        """`FRIL`, `MON#2`."""
        item = self.item
        if item == "L":
            raise self.bad(
                sentence("cron.l", "'L' alone is ambiguous here"),
                fix=sentence("cron.l_fix", "write 'SAT', or e.g. 'FRIL'"),
            )
        if "#" in item:
            return self.nth_weekday(*item.split("#", 1))
        if not item.endswith("L"):
            return None
        if "-" in item or "/" in item or "*" in item:
            raise self.bad(sentence("cron.l_day", "'L' needs a single day before it (FRIL)"))
        day = self.kind.bit(self.number(item[:-1]))
        return Field(f"{WEEKDAYS[day]}L", 0, is_star=False, last=1 << day)

    def nth_weekday(self, day_text: str, nth_text: str) -> Field:
        if not _is_digits(nth_text) or not 1 <= int(nth_text) <= 5:
            raise self.bad(sentence("cron.nth", "'#{text}': the occurrence must be 1-5", text=nth_text[:20]))
        if "-" in day_text or "/" in day_text or "*" in day_text:
            raise self.bad(sentence("cron.nth_day", "'#' needs a single day before it (MON#2)"))
        day, nth = self.kind.bit(self.number(day_text)), int(nth_text)
        return Field(f"{WEEKDAYS[day]}#{nth}", 0, is_star=False, nth=1 << 5 * day + nth - 1)

    def bad(self, reason: Said, *, fix: Said = "") -> BadCronField:
        return BadCronField(self.kind.name, self.whole, reason, fix=fix)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _full_mask(kind: FieldKind) -> int:
    return parse_field("*", kind).mask


def _union(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)
