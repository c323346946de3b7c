"""Fires schedules: creates their jobs and advances them, each in one step under its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.memory.lookahead import LookaheadDecider
from rota.store.shared.placing import fire_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.firing import Firing
    from rota.store.contract import Fired


class Firer(LookaheadDecider):
    """Fires schedules."""

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        with self._lock:
            self._check_open()
            at = self._at(now)
            results = [self._fire(firing, at) for firing in firings]
        self._notifier.notify("jobs")
        return results

    def _fire(self, firing: Firing, now: int) -> Fired:
        after, fired = fire_one(firing, self._schedules.get(firing.schedule.id), self._steps(now), now)
        if after is not None:
            self._schedules[after.id] = after
        return fired
