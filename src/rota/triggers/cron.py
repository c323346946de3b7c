"""Defines cron rules: the public trigger, and how its wall times become instants across clock changes.

In a gap (clocks jump ahead) the missing times become one run at the jump's end, unless the rule fires every hour
anyway. In a fold (clocks fall back) a rule that names times runs on the first pass only; a cadence such as `*/15`
continues through the second. A local date that does not exist at all has no run.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Self

from rota.errors import BadCron
from rota.keywords import known_keywords
from rota.sentences import sentence
from rota.triggers.caveats import cron_caveats
from rota.triggers.cron_text import CronFields, check_text, parse_cron, split_zone
from rota.triggers.every import every
from rota.triggers.explain import explain_cron
from rota.triggers.option_names import FOR_TRIGGERS
from rota.triggers.phrases import ENGLISH, Phrases
from rota.triggers.rezoned import WallTrigger
from rota.triggers.wall_pattern import WallPattern
from rota.triggers.zone import DAY, EARLIEST, LATEST, Span, date_is_missing, zone_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.triggers.trigger import Caveat, Trigger

_FAR = 400 * DAY  # beyond this the spans in between need not be visited one by one


@known_keywords("cron()", FOR_TRIGGERS)
def cron(expression: str, *, tz: object = None, dialect: str | None = None) -> Trigger:
    """A trigger from cron text: 5 fields, 6 with seconds first, 7 as Quartz, a macro, or `@every 1h30m`.

    `tz` is an IANA name; None leaves it to the schedule, the tenant or the app (UTC until then).
    """
    zone, text = split_zone(check_text(expression))
    tz = _one_zone(zone, tz)
    if text.lower().startswith(("@every ", "@every\t")):
        return every(text[6:], tz=tz)
    if dialect is not None and not isinstance(dialect, str):
        raise BadCron(sentence("cron.dialect_bad", "dialect={dialect!r} must be 'unix' or 'quartz'", dialect=dialect))
    return Cron(_pattern(text, dialect), tz)


def _one_zone(prefix: str | None, tz: object) -> str | None:
    inside, outside = zone_name(prefix), zone_name(tz)
    if inside and outside and inside != outside:
        raise BadCron(
            sentence(
                "cron.zones",
                "the expression says timezone '{inside}', but tz='{outside}' was given",
                inside=inside,
                outside=outside,
            ),
            fix=sentence("cron.zones_fix", "drop one of them"),
        )
    return inside or outside


@lru_cache(maxsize=256)
def _pattern(text: str, dialect: str | None) -> WallPattern:
    return WallPattern(parse_cron(text, dialect))


class Cron(WallTrigger):
    """A cron expression in a zone."""

    __slots__ = ("_cadence", "_pattern", "_window")

    def __init__(
        self, pattern: WallPattern, tz: object, *, done: datetime | None = None, kept: int | None = None
    ) -> None:
        super().__init__(tz, done=done, kept=kept)
        self._pattern = pattern
        self._cadence = pattern.fields.is_cadence
        self._window = (
            0,
            0,
            0,
            0,
            0,
        )  # the span of the last answer: lo, hi, offset, first and end wall second
        self._set_floor()

    @property
    def fields(self) -> CronFields:
        return self._pattern.fields

    @property
    def expression(self) -> str:
        """The normalised expression."""
        return self.fields.text

    def explain(self, phrases: Phrases = ENGLISH) -> str:
        return explain_cron(self.fields, self.tz, phrases)

    def _caveats(self, low: int, high: int) -> Iterator[Caveat]:
        return cron_caveats(self._pattern, self._zone, low, high)

    def _next(self, t: int) -> int | None:
        lo, hi, offset, first, end = self._window
        if not lo <= t < hi:
            lo, hi, offset, first, end = self._look_at(self._zone.span(t))
        wall = self._pattern.after(t + offset)
        if wall is not None and first <= wall < end:
            return wall - offset
        return self._next_across(t)

    def _look_at(self, span: Span) -> tuple[int, int, int, int, int]:
        self._window = (span.lo, span.hi, span.offset, self._first_wall(span), span.wall_end)
        return self._window

    def _first_wall(self, span: Span) -> int:
        """The start of a span's own times: a cadence repeats the times that a fold shows again."""
        return span.lo + span.offset if self._cadence else span.fresh

    def _next_across(self, t: int) -> int | None:
        """The next run where a transition may lie in between: span by span, gap or fold in turn."""
        span = self._zone.span(t)
        since = max(t + span.offset, self._first_wall(span) - 1)
        found = self._pattern.after(since)
        while found is None or found >= span.wall_end:
            if span.hi >= LATEST or (found is None and span.after >= span.offset):
                return None
            is_far = found is not None and found - span.wall_end > _FAR
            span = self._zone.span(span.hi)
            shown = span.lo + span.offset - 1  # no wall time up to here belongs to this span alone
            if found is not None and found <= shown and self._runs_at_jump(span):
                return span.lo
            if found is not None and is_far and span.before <= span.offset:
                span = self._zone.span(found - span.offset - 3 * DAY)
            later = max(shown, self._first_wall(span) - 1)
            if found is None or not since <= later < found:
                found = self._pattern.after(later)
            since = later
        return found - span.offset

    def _runs_at_jump(self, span: Span) -> bool:
        """Whether the gap that ends where this span begins contains a time that must still run."""
        return self._in_gap(span) is not None

    def _in_gap(self, span: Span) -> int | None:
        if span.before >= span.offset or self.fields.is_every_hour:
            return None
        gap = (span.lo + span.before, span.lo + span.offset)
        wall = self._pattern.after(gap[0] - 1)
        while wall is not None and wall < gap[1]:
            if not date_is_missing(wall, gap):
                return wall
            wall = self._pattern.after(wall - wall % DAY + DAY - 1)
        return None

    def _last_in_gap(self, low: int, high: int) -> int | None:
        wall = self._pattern.before(high)
        return wall if wall is not None and wall >= low and not self.fields.is_every_hour else None

    def _previous(self, t: int) -> int | None:
        span = self._zone.span(t - 1)
        wall = t + span.offset
        while True:
            found = self._pattern.before(wall)
            if found is not None and found >= self._first_wall(span):
                return found - span.offset
            if self._runs_at_jump(span):
                return span.lo
            if span.lo <= EARLIEST or (found is None and span.before <= span.offset):
                return None
            wall = span.lo + span.before
            far = found is not None and wall - found > _FAR and span.before <= span.offset
            span = self._zone.span(span.lo - 1)
            if far and found is not None:
                span = self._zone.span(found - span.offset + 3 * DAY)
                wall = span.wall_end

    def _count(self, low: int, high: int) -> int:
        total, t = 0, low + 1
        while t <= high:
            span = self._zone.span(t)
            end = min(span.hi, high + 1)
            total += self._pattern.count(max(t + span.offset, self._first_wall(span)), end + span.offset)
            if t == span.lo and self._runs_at_jump(span) and not self._pattern.matches(t + span.offset):
                total += 1
            t = end
        return total

    def _guards_dates(self) -> bool:
        return not self.fields.is_every_hour

    @property
    def is_dated(self) -> bool:
        return all(field.mask.bit_count() == 1 for field in self.fields[:3])

    def _replaced(self, tz: str | None, *, done: datetime | None, kept: int | None) -> Self:
        return type(self)(self._pattern, tz, done=done, kept=kept)

    def __str__(self) -> str:
        parts = ["cron", self.expression]
        if self.tz:
            parts.append(f"tz={self.tz}")
        if self.fields.dialect:
            parts.append(f"dialect={self.fields.dialect}")
        return " ".join([*parts, *self._past()])
