"""Defines triggers: pure time. Given an instant, a trigger finds the next. No kind of trigger reads a clock.

Inside, time is whole seconds since the epoch; datetimes appear at this border only. An occurrence is always a whole
second, so an instant between two seconds counts as the second before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from math import ceil, floor
from typing import TYPE_CHECKING, Self

from rota.clock import utc_now
from rota.errors import BadInterval, NaiveDatetime
from rota.triggers.duration import seconds_of
from rota.triggers.phrases import ENGLISH, Phrases
from rota.triggers.zone import DAY, EARLIEST, LATEST, Zone, clamp, find_zone, zone_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_RUNS = 10_000  # next_runs is for people; programs that need more iterate
_EPOCH_DATE = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Caveat:
    """Behaviour of a trigger that would surprise its author: its kind, in words, and when."""

    kind: str  # gap | repeat | rare-date | day-or | day-and | step | every
    message: str
    at: datetime | None = None
    code: str = field(default="", compare=False)  # of the message: stays the same if the message is reworded
    values: Mapping[str, str | int] = field(default_factory=dict, compare=False)  # of the message


class Trigger(ABC):
    """A rule for when, as an immutable value: equal texts are equal triggers."""

    __slots__ = ("_span", "_zone", "tz")

    def __init__(self, tz: object) -> None:
        self.tz = zone_name(tz)
        self._zone: Zone = find_zone(self.tz or "UTC")
        self._span = self._zone.span(0)

    # Questions that each kind answers.

    @abstractmethod
    def next_second(self, t: int) -> int | None:
        """The first occurrence later than t, in seconds since the epoch: the engine's own form of next_after."""

    @abstractmethod
    def second_before(self, t: int) -> int | None:
        """The last occurrence earlier than t."""

    @abstractmethod
    def count_seconds(self, low: int, high: int) -> int:
        """How many occurrences lie in low < t <= high, without walking them."""

    @abstractmethod
    def explain(self, phrases: Phrases = ENGLISH) -> str:
        """The rule in one sentence: in English, or with the phrases of another language."""

    @abstractmethod
    def _caveats(self, low: int, high: int) -> Iterator[Caveat]:
        """Behaviour that would surprise the author between two instants."""

    @abstractmethod
    def _with_zone(self, tz: str) -> Self: ...

    @property
    def is_dated(self) -> bool:
        """Whether it names at most one time on a local date, so that a date is done with one run."""
        return False

    @abstractmethod
    def __str__(self) -> str:
        """The compact text form, which trigger_from_text reads back."""

    # Methods that all kinds share.

    def next_after(self, instant: datetime) -> datetime | None:
        """The first occurrence later than `instant`, in the trigger's zone; None if there is none."""
        t = self.next_second(second_of(instant))
        return None if t is None else self._datetime(t)

    def previous_before(self, instant: datetime) -> datetime | None:
        """The last occurrence earlier than `instant`; None if there is none."""
        t = self.second_before(clamp(ceil(_timestamp(instant))))
        return None if t is None else self._datetime(t)

    def next_runs(self, n: int = 10, *, after: datetime | None = None) -> list[datetime]:
        """The next n occurrences after an instant (by default after now)."""
        if not 0 <= n <= MOST_RUNS:
            raise BadInterval(f"next_runs lists 0 to {MOST_RUNS} runs, got {n}")
        runs: list[datetime] = []
        t = self.next_second(second_of(after or utc_now())) if n else None
        while t is not None:
            runs.append(self._datetime(t))
            t = self.next_second(t) if len(runs) < n else None
        return runs

    def count_between(self, after: datetime, until: datetime) -> int:
        """How many occurrences lie in after < t <= until."""
        low, high = second_of(after), second_of(until)
        return self.count_seconds(low, high) if high > low else 0

    def warnings(
        self, horizon: timedelta | str = timedelta(days=366), *, after: datetime | None = None
    ) -> list[Caveat]:
        """Behaviour that would surprise the author within a horizon: clock changes with their dates, dates that
        rarely exist."""
        low = second_of(after or utc_now())
        return list(self._caveats(low, clamp(low + seconds_of(horizon))))

    def bound(self, tz: object = None, *, start: datetime | None = None) -> Trigger:  # noqa: ARG002 - for anchors
        """This trigger with open values filled in: its zone, and for intervals its anchor."""
        name = zone_name(tz)
        return self._with_zone(name) if self.tz is None and name else self

    def rezoned(
        self,
        new_tz: object,
        *,
        done_date: date | None = None,  # noqa: ARG002 - only wall-clock rules can repeat a local date
        keep_next: datetime | None = None,  # noqa: ARG002 - likewise
    ) -> Trigger:
        """This trigger in another zone. Elapsed time is the same everywhere, so only the times shown change."""
        name = zone_name(new_tz)
        return self._with_zone(name) if name else self

    def wall_time_of(self, occurrence: datetime) -> datetime:
        """The local time, without a zone, that an occurrence stands for."""
        return wall_datetime(self._zone.wall_of(second_of(occurrence)))

    def _datetime(self, t: int) -> datetime:
        span = self._span
        if not span[0] <= t < span[1]:
            span = self._span = self._zone.span(t)
        return datetime.fromtimestamp(t, span[5])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trigger) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"<{self}>"


def second_of(instant: datetime) -> int:
    """The whole second at or before an aware datetime."""
    t = floor(_timestamp(instant))
    return t if EARLIEST <= t <= LATEST else clamp(t)


def _timestamp(instant: datetime) -> float:
    try:
        if instant.tzinfo is not None:
            return instant.timestamp()
    except (AttributeError, OverflowError) as err:
        raise NaiveDatetime(f"expected an aware datetime, got {instant!r}") from err
    raise NaiveDatetime(
        f"{instant!r} has no timezone, so it names no instant",
        text=str(instant),
        fix="add one, as in datetime(…, tzinfo=UTC) or .astimezone(ZoneInfo('Europe/Paris'))",
    )


def wall_datetime(wall: int) -> datetime:
    """Wall seconds as a naive datetime."""
    return datetime(1970, 1, 1) + timedelta(seconds=wall)  # noqa: DTZ001 - a wall time has no zone


def wall_second(local: date) -> int:
    """A local date (its midnight) or naive datetime as wall seconds."""
    second = 0
    if isinstance(local, datetime):
        if local.tzinfo is not None:
            raise BadInterval(f"{local!r} must be a local date or a datetime without a timezone")
        second = local.hour * 3600 + local.minute * 60 + local.second
    return (local.toordinal() - _EPOCH_DATE.toordinal()) * DAY + second


def instant_text(t: int) -> str:
    """An instant in text forms: 2026-01-31T00:05:00Z."""
    return f"{wall_datetime(t).isoformat()}Z"
