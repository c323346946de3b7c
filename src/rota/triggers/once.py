"""Defines a single instant, with nothing after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rota.keywords import known_keywords
from rota.triggers.bounds import check_years, instant_from
from rota.triggers.explain import explain_once
from rota.triggers.option_names import FOR_TRIGGERS
from rota.triggers.phrases import ENGLISH, Phrases
from rota.triggers.trigger import Caveat, Trigger, instant_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


@known_keywords("once()", FOR_TRIGGERS)
def once(instant: datetime, *, tz: object = None) -> Trigger:
    """A trigger for one aware datetime; a fraction of a second is rounded up, so it is never early."""
    second = instant_from(instant, "once()")
    check_years("once", instant)
    return Once(second, tz=tz)


class Once(Trigger):
    """A single occurrence."""

    __slots__ = ("second",)

    def __init__(self, second: int, *, tz: object) -> None:
        super().__init__(tz)
        self.second = second

    def next_second(self, t: int) -> int | None:
        return self.second if t < self.second else None

    def second_before(self, t: int) -> int | None:
        return self.second if self.second < t else None

    def count_seconds(self, low: int, high: int) -> int:
        return int(low < self.second <= high)

    def explain(self, phrases: Phrases = ENGLISH) -> str:
        if self.second == 0:  # a collection that is synced on demand is declared for a time in the past
            return phrases.say("by_hand")
        return explain_once(self._datetime(self.second), self.tz, phrases)

    def _caveats(self, low: int, high: int) -> Iterator[Caveat]:  # noqa: ARG002 - an instant is what it is
        return iter(())

    def _with_zone(self, tz: str) -> Self:
        return type(self)(self.second, tz=tz)

    def __str__(self) -> str:
        suffix = f" tz={self.tz}" if self.tz else ""
        return f"once {instant_text(self.second)}{suffix}"
