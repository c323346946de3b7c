"""Contention: firings that meet a transaction which is not over are taken apart, so that only its own schedules wait.

A scheduler that dies inside its transaction leaves the schedules of its batch locked until the server, or another node,
ends its session (see `head`). The others' batches would fail whole, again and again, for one such schedule in them. So
a batch that has waited for a while is halved, down to the single schedules that are locked. Those are refused, as ones
that somebody else has changed first, and are left out of what is due for a moment, so that what is due after them goes
on and nobody asks in vain without a pause.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rota.store.contract import Fired
from rota.store.mongo.steps import Contended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.steps import Steps

PATIENCE = 0.5  # seconds: others' transactions take a few milliseconds
PAUSE = 1.0  # seconds until a locked schedule is tried again


class Contention:
    """Fires batches of one namespace's schedules around what is locked."""

    def __init__(self, steps: Steps, schedules: Schedules) -> None:
        self._steps = steps
        self._schedules = schedules
        self._locked: dict[str, float] = {}  # until when each is left alone

    def fire(self, firings: Sequence[Firing], now: int, patience: float = PATIENCE) -> list[Fired]:
        """Fire them all in one step; where that cannot be, those that can."""
        try:
            return self._steps.run("fire", lambda step: self._schedules.fire(step, firings, now), patience=patience)
        except Contended:
            if len(firings) == 1:
                return [self._refuse(firings[0].schedule.id)]
        half = len(firings) // 2
        return [*self.fire(firings[:half], now, 0), *self.fire(firings[half:], now, 0)]

    def locked(self) -> list[str]:
        """The schedules that are left alone for now."""
        at = time.monotonic()
        self._locked = {name: until for name, until in self._locked.items() if until > at}
        return list(self._locked)

    def _refuse(self, name: str) -> Fired:
        self._locked = {**self._locked, name: time.monotonic() + PAUSE}
        return Fired(schedule_id=name, is_accepted=False)
