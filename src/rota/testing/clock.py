"""Defines ManualClock: its time stands still until a test moves it."""

from __future__ import annotations

from datetime import datetime, timedelta

from rota.errors import BadOption
from rota.model.micros import SECOND, datetime_of, fine_span_of, micros_of

A_MONDAY = "2026-01-05T12:00:00Z"
_MICROSECOND = timedelta(microseconds=1)


class ManualClock:
    """A store's clock that a test moves: `ManualClock("2026-03-07T12:00:00Z")`."""

    def __init__(self, start: str | datetime = A_MONDAY) -> None:
        self._micros = _instant(start)

    @property
    def now(self) -> datetime:
        """The time it shows, in UTC."""
        return datetime_of(self._micros)

    def travel(self, duration: str | timedelta) -> datetime:
        """Move on by `"1h30m"` or a timedelta; nothing runs meanwhile, as if every process were down."""
        span = duration // _MICROSECOND if isinstance(duration, timedelta) else fine_span_of(duration)
        return self.move_to(self._micros + span)

    def travel_to(self, instant: str | datetime) -> datetime:
        """Move on to an instant; nothing runs meanwhile."""
        return self.move_to(_instant(instant))

    def move_to(self, micros: int) -> datetime:
        """As travel_to, in the store's own unit: microseconds since the epoch."""
        if micros < self._micros:
            raise BadOption(f"the clock shows {self.now.isoformat()} already; it moves forward only")
        self._micros = micros
        return self.now

    def micros(self) -> int:
        """The time it shows, as stores count it."""
        return self._micros

    def monotonic(self) -> float:
        """The same in seconds, for code that measures how long something takes."""
        return self._micros / SECOND

    def __repr__(self) -> str:
        return f"<manual clock {self.now.isoformat()}>"


def _instant(given: str | datetime) -> int:
    if not isinstance(given, str):
        return micros_of(given)
    try:
        instant = datetime.fromisoformat(given)
    except ValueError as err:
        raise BadOption(f"{given!r} is no instant; write it as '2026-03-07T12:00:00Z'") from err
    return micros_of(instant)
