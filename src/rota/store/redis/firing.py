"""Makes the jobs of firings and advances their schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Fired
from rota.store.redis.fast.plain_firing import fire_plain
from rota.store.redis.guarded_write import stored_schedule
from rota.store.redis.schedules import MOST_AT_ONCE, ScheduleRead, put_schedule
from rota.store.shared.placing import fire_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.firing import Firing
    from rota.store.redis.guarded_write import GuardedWrite, GuardedWriter
    from rota.store.redis.schedules import Schedules


class Firer:
    """Fires schedules, unless they were changed meanwhile."""

    def __init__(self, writer: GuardedWriter, schedules: Schedules) -> None:
        self._writer = writer
        self._schedules = schedules

    def fire(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        results: list[Fired] = []
        for start in range(0, len(firings), MOST_AT_ONCE):
            results += self._fire_batch(firings[start : start + MOST_AT_ONCE], now)
        return results

    def _fire_batch(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        """In the order of firings, so that positions are."""
        number = fire_plain(self._writer.connection, firings, now)
        done = [Fired.of(firing.schedule.id, [firing.shots[0].job.id], ()) for firing in firings[:number]]
        rest = [(_read_for(firing), firing) for firing in firings[number:]]
        return done + self._schedules.decide("fire", rest, _decided, now)


def _decided(firing: Firing, wanted: ScheduleRead, write: GuardedWrite) -> tuple[bool, Fired]:
    schedule = stored_schedule(write, wanted.name)
    after, fired = fire_one(firing, schedule, write, write.now)
    if after is not None:
        put_schedule(write, wanted.name, schedule, after)
        write.set_last_run(wanted.name, after.last, is_own=True)
    return fired.is_accepted, fired


def _read_for(firing: Firing) -> ScheduleRead:
    return ScheduleRead(
        name=firing.schedule.id,
        ledger_from=firing.schedule.fired_through,
        jobs=[shot.job for shot in firing.shots],
        jobs_in=("live",) if any(shot.when_busy != "allow" for shot in firing.shots) else (),
    )
