"""Fires schedules: creates their jobs and advances them, each in one step under its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.memory.lookahead import LookaheadDecider
from rota.store.shared.placing import advanced, place_firing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.firing import Firing


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
        schedule = self._schedules.get(firing.schedule.id)
        holds = schedule is not None and firing.holds_for(schedule.version, schedule.created_at)
        placed = place_firing(firing, self._steps(now)) if holds else None
        if schedule is None or placed is None:
            return Fired(schedule_id=firing.schedule.id, is_accepted=False)
        for skip in placed.skips:
            self._ledger.record(of_skip(schedule.id, skip))
        self._schedules[schedule.id] = advanced(firing, schedule, placed.jobs, now)
        return Fired.of(schedule.id, placed.jobs, placed.skips)
