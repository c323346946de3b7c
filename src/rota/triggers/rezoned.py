"""Defines rules by the wall clock, and how they change zone: no local date runs twice.

A zone can change in two ways. At once: the new zone's times hold from now on, but nothing at or before `done`, the wall
time that already ran, runs again. Keep next: the run that was announced in the old zone still happens, once, and the
new zone's times follow it. Both agree from the second run on.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import date, datetime
from typing import TYPE_CHECKING, Self

from rota.errors import BadInterval
from rota.triggers.trigger import Trigger, instant_text, second_of, wall_datetime, wall_second
from rota.triggers.zone import DAY, EARLIEST, zone_name

if TYPE_CHECKING:
    from collections.abc import Iterator


class WallTrigger(Trigger):
    """A trigger that names local times. Its kind decides by the zone alone; this class adds the times before a
    change of zone."""

    __slots__ = ("_floor", "done", "kept")

    def __init__(self, tz: object, *, done: datetime | None = None, kept: int | None = None) -> None:
        super().__init__(tz)
        self.done = done  # the last local time that ran before the zone changed
        self.kept = kept  # an instant announced in the old zone that still runs
        self._floor = EARLIEST  # nothing at or before it runs by the new zone's rule

    @abstractmethod
    def _next(self, t: int) -> int | None:
        """next_second by this zone alone."""

    @abstractmethod
    def _previous(self, t: int) -> int | None:
        """second_before by this zone alone."""

    @abstractmethod
    def _count(self, low: int, high: int) -> int:
        """count_seconds by this zone alone."""

    @abstractmethod
    def _replaced(self, tz: str | None, *, done: datetime | None, kept: int | None) -> Self:
        """The same rule in another zone, or with another past."""

    @abstractmethod
    def _guards_dates(self) -> bool:
        """Whether a local time must not run twice (a rule that fires every hour may repeat its local times)."""

    def _set_floor(self) -> None:
        """Turn `done` and `kept` into one instant. Called after the kind's own fields are set."""
        floor = EARLIEST if self.done is None else self._last_instant(wall_second(self.done))
        self._floor = floor if self.kept is None else max(floor, self.kept)

    def _last_instant(self, wall: int) -> int:
        """The last instant at which the local clock shows `wall` or less: after both passes of a fold."""
        until = self._zone.instant_of(wall + 1) - 1
        at = self._zone.instant_if_exists(wall)
        return until if at is None else max(at, until)

    def next_second(self, t: int) -> int | None:
        if t >= self._floor:
            return self._next(t)
        if self.kept is not None and t < self.kept:
            return self.kept
        return self._next(self._floor)

    def second_before(self, t: int) -> int | None:
        previous = self._previous(t)
        if previous is not None and previous > self._floor:
            return previous
        if self.kept is not None:
            return self.kept if self.kept < t else None
        return previous if self._floor == EARLIEST else None

    def count_seconds(self, low: int, high: int) -> int:
        kept = 1 if self.kept is not None and low < self.kept <= high else 0
        low = max(low, self._floor)
        return kept + (self._count(low, high) if high > low else 0)

    def rezoned(self, new_tz: object, *, done_date: date | None = None, keep_next: datetime | None = None) -> Trigger:
        """This rule in another zone. A local date that is done never runs again.

        `done_date` is the local date of the last run (or its local time, if a day has several). `keep_next` is the next
        run as it was announced: that run still happens at its old instant.
        """
        name = zone_name(new_tz)
        if keep_next is not None:
            return self._keeping(name, keep_next)
        done = self.done if done_date is None else self._end_of(done_date)
        return self._replaced(name, done=done if self._guards_dates() else None, kept=None)

    def wall_time_of(self, occurrence: datetime) -> datetime:
        """The local time that an occurrence stands for: the last one inside the gap, if a gap moved it."""
        t = second_of(occurrence)
        span = self._zone.span(t)
        if t == span.lo and span.before < span.offset:
            inside = self._last_in_gap(span.lo + span.before, span.lo + span.offset)
            if inside is not None:
                return wall_datetime(inside)
        return wall_datetime(t + span.offset)

    def _last_in_gap(self, low: int, high: int) -> int | None:  # noqa: ARG002 - for kinds that move times
        return None

    def _keeping(self, name: str | None, keep_next: datetime) -> Trigger:
        t = second_of(keep_next)
        if self.next_second(t - 1) != t:
            raise BadInterval(f"keep_next: {keep_next.isoformat()} is not a run of '{self}'")
        done = self.wall_time_of(keep_next) if self._guards_dates() else None
        return self._replaced(name, done=done, kept=t)

    def _end_of(self, done: date) -> datetime:
        """A date is done with its last second."""
        if isinstance(done, datetime):
            return wall_datetime(wall_second(done))
        return wall_datetime(wall_second(done) + DAY - 1)

    def _with_zone(self, tz: str) -> Self:
        return self._replaced(tz, done=self.done, kept=self.kept)

    def with_past(self, *, done: datetime | None, kept: int | None) -> Self:
        """The same rule with another past (for its text form)."""
        return self._replaced(self.tz, done=done, kept=kept)

    def _past(self) -> Iterator[str]:
        """The parts of the text form that remember a change of zone."""
        if self.done is not None:
            yield f"done={self.done.isoformat(timespec='seconds')}"
        if self.kept is not None:
            yield f"kept={instant_text(self.kept)}"
