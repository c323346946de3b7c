"""Defines a fixed length of elapsed time from an anchor; clock changes neither lengthen nor shorten it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rota.keywords import known_keywords
from rota.triggers.bounds import (
    Bound,
    bound_text,
    check_order,
    first_instant,
    last_instant,
    read_end,
    read_start,
)
from rota.triggers.duration import seconds_of, text_of
from rota.triggers.explain import explain_every
from rota.triggers.option_names import FOR_TRIGGERS
from rota.triggers.phrases import ENGLISH, Phrases
from rota.triggers.trigger import Caveat, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime, timedelta


@known_keywords("every()", FOR_TRIGGERS)
def every(
    duration: str | timedelta, *, start: date | None = None, end: date | None = None, tz: object = None
) -> Trigger:
    """A trigger at a fixed interval: `every("1h30m")`.

    Runs are counted from `start` (inclusive; an aware datetime, or a date for its local midnight). Without one they are
    counted from the schedule's start or creation once it has one, and from the epoch until then; never from "now".
    """
    first, last = read_start(start), read_end(end)
    check_order(first, last)
    return Every(seconds_of(duration), start=first, end=last, tz=tz)


class Every(Trigger):
    """Elapsed time: anchor + k x interval, for k = 0, 1, 2, …"""

    __slots__ = ("_anchor", "_last", "end", "interval", "start")

    def __init__(self, interval: int, *, start: Bound | None, end: Bound | None, tz: object) -> None:
        super().__init__(tz)
        self.interval = interval
        self.start = start
        self.end = end
        self._anchor = first_instant(start, self._zone) or 0
        self._last = last_instant(end, self._zone)

    def next_second(self, t: int) -> int | None:
        found = self._anchor + self._runs_until(t) * self.interval
        return found if found <= self._last else None

    def second_before(self, t: int) -> int | None:
        runs = self._runs_until(min(t - 1, self._last))
        return self._anchor + (runs - 1) * self.interval if runs else None

    def count_seconds(self, low: int, high: int) -> int:
        return max(0, self._runs_until(min(high, self._last)) - self._runs_until(low))

    def _runs_until(self, t: int) -> int:
        """How many runs lie at or before t."""
        return max(0, (t - self._anchor) // self.interval + 1)

    def explain(self, phrases: Phrases = ENGLISH) -> str:
        return explain_every(self.interval, self.start, self.end, self.tz, phrases)

    def _caveats(self, low: int, high: int) -> Iterator[Caveat]:  # noqa: ARG002 - elapsed time has no surprises
        return iter(())

    def bound(self, tz: object = None, *, start: datetime | None = None) -> Trigger:
        """Fill in the zone and the anchor where they are still open."""
        trigger = super().bound(tz)
        if self.start is not None or start is None:
            return trigger
        return type(self)(self.interval, start=read_start(start), end=self.end, tz=trigger.tz)

    def _with_zone(self, tz: str) -> Self:
        return type(self)(self.interval, start=self.start, end=self.end, tz=tz)

    def __str__(self) -> str:
        parts = ["every", text_of(self.interval)]
        if self.start is not None:
            parts.append(f"start={bound_text(self.start)}")
        if self.end is not None:
            parts.append(f"end={bound_text(self.end)}")
        if self.tz:
            parts.append(f"tz={self.tz}")
        return " ".join(parts)
