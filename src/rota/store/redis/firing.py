"""Makes the jobs of firings and advances their schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.store.contract import Fired
from rota.store.redis.codec import UNKNOWN_LAST
from rota.store.redis.fast.plain_firing import fire_plain
from rota.store.redis.guarded_write import stored_schedule
from rota.store.redis.schedules import MOST_AT_ONCE, ScheduleRead, put_schedule
from rota.store.shared.placing import advanced, place_firing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.firing import Firing
    from rota.model.schedules.schedule import Schedule
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
        number = fire_plain(self._writer.connection, firings, now, _advanced)
        done = [Fired.of(firing.schedule.id, [firing.shots[0].job.id], ()) for firing in firings[:number]]
        rest = [(_read_for(firing), firing) for firing in firings[number:]]
        return done + self._schedules.decide("fire", rest, _decided, now)


def _decided(firing: Firing, wanted: ScheduleRead, write: GuardedWrite) -> tuple[bool, Fired]:
    name = wanted.name
    schedule = stored_schedule(write, name)
    holds = schedule is not None and firing.holds_for(schedule.version, schedule.created_at)
    placed = place_firing(firing, write) if holds else None
    if schedule is None or placed is None:
        return False, Fired(schedule_id=name, is_accepted=False)
    for skip in placed.skips:
        write.record_skip(name, skip)
    after = _advanced(firing, schedule, placed.jobs, write.now)
    put_schedule(write, name, schedule, after)
    write.set_last_run(name, after.last, is_own=True)
    return True, Fired.of(name, placed.jobs, placed.skips)


def _read_for(firing: Firing) -> ScheduleRead:
    return ScheduleRead(
        name=firing.schedule.id,
        ledger_from=firing.schedule.fired_through,
        jobs=[shot.job.id for shot in firing.shots],
        fire_times=[shot.job.fire_at or 0 for shot in firing.shots],
        jobs_in=("live",) if any(shot.when_busy != "allow" for shot in firing.shots) else (),
    )


def _advanced(firing: Firing, schedule: Schedule, made: list[str], now: int) -> Schedule:
    """The schedule after the firing, with its last run unknown: only what the firing sets is written."""
    return advanced(firing, msgspec.structs.replace(schedule, last=UNKNOWN_LAST), made, now)
