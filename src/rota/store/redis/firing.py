"""Fires schedules: those that only make their job in one round trip per batch, the others after reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.failpoints import reach
from rota.store.contract import Fired
from rota.store.redis.adding import joined, request_of
from rota.store.redis.codec import UNKNOWN_LAST, pack_last, pack_schedule, schedule_head
from rota.store.redis.schedules import MOST_AT_ONCE, ScheduleRead, put_schedule
from rota.store.shared.placing import advanced, place_firing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.model.schedule import Schedule
    from rota.store.redis.guarded_write import GuardedWrite
    from rota.store.redis.guarded_writer import GuardedWriter
    from rota.store.redis.schedules import Schedules, ScheduleSnapshot

MOST_TRIES = 2  # to fire without reading, before all schedules of a batch are read


class Firer:
    """Makes the jobs of firings and advances their schedules, unless those were changed meanwhile."""

    def __init__(self, writer: GuardedWriter, schedules: Schedules) -> None:
        self._writer = writer
        self._schedules = schedules

    def fire(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        results: list[Fired] = []
        for start in range(0, len(firings), MOST_AT_ONCE):
            results += self._fire_batch(firings[start : start + MOST_AT_ONCE], now)
        return results

    def _fire_batch(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        """First those up to the first that is blocked or does more than make its job, then the others: so positions
        are in the order of firings."""
        number = _number_plain(firings)
        for _ in range(MOST_TRIES):
            unblocked = self._fire_plain(firings[:number], now) if number else 0
            if unblocked == number:
                break
            number = unblocked
        else:
            number = 0
        done = [Fired.of(firing.schedule.id, [firing.shots[0].job.id], ()) for firing in firings[:number]]
        rest = [(_read_for(firing), firing) for firing in firings[number:]]
        return done + self._schedules.decide("fire", rest, self._decided, now)

    def _fire_plain(self, firings: Sequence[Firing], now: int | None) -> int:
        """Fire all or none; returns how many come before the first that is blocked."""
        connection = self._writer.connection
        while True:
            request = _request(firings, connection.clock.now() if now is None else now)
            reach("fire.before_commit")
            reply = connection.call("fire", now=now, is_work=True, **request)
            if reply.body[0] == b"blocked":
                return int(reply.body[1]) - 1
            if reply.body[0] == b"fired":
                reach("fire.after_commit")
                return len(firings)
            connection.clock.reset(reply.now)

    def _decided(self, firing: Firing, found: ScheduleSnapshot, now: int) -> tuple[GuardedWrite | None, Fired]:
        schedule = found.schedule
        if schedule is None or not firing.holds_for(schedule.version, schedule.created_at):
            return None, Fired(schedule_id=found.name, is_accepted=False)
        write = found.write(self._writer, now)
        placed = place_firing(firing, write)
        if placed is None:
            return None, Fired(schedule_id=found.name, is_accepted=False)
        for skip in placed.skips:
            write.record_skip(found.name, skip)
        after = _advanced(firing, schedule, placed.jobs, now)
        put_schedule(write, after, schedule)
        write.forget_last_runs(found.name)
        write.set_last_run(found.name, pack_last(after.last))
        return write, Fired.of(found.name, placed.jobs, placed.skips)


def _number_plain(firings: Sequence[Firing]) -> int:
    """How many of the first make one job each and do nothing else, and share no schedule or key."""
    seen: set[tuple[str, str]] = set()
    for number, firing in enumerate(firings):
        names = {("schedule", firing.schedule.id), *(("key", key) for key in firing.keys)}
        if not firing.is_plain or names & seen:
            return number
        seen |= names
    return len(firings)


def _request(firings: Sequence[Firing], at: int) -> dict[str, Any]:
    """Firings as the script takes them: their jobs, and each schedule before and after."""
    jobs = [firing.shots[0].job for firing in firings]
    after = [_advanced(firing, firing.schedule, [job.id], at) for firing, job in zip(firings, jobs, strict=True)]
    return {
        **request_of(jobs, at),
        **joined("schedules", [pack_schedule(schedule) for schedule in after]),
        "names": [schedule.id for schedule in after],
        "guards": [schedule_head(firing.schedule).decode() for firing in firings],
        "fire_times": [job.fire_at for job in jobs],
        "lasts": [pack_last(schedule.last) for schedule in after],
        "dues": [part for schedule in after if schedule.due_at is not None for part in (schedule.due_at, schedule.id)],
        "spent": [schedule.id for schedule in after if schedule.due_at is None],
    }


def _read_for(firing: Firing) -> ScheduleRead:
    return ScheduleRead(
        name=firing.schedule.id,
        ledger_from=firing.schedule.fired_through,
        jobs=[shot.job.id for shot in firing.shots],
        fire_times=[shot.job.fire_at or 0 for shot in firing.shots],
        needs_live=any(shot.when_busy != "allow" for shot in firing.shots),
    )


def _advanced(firing: Firing, schedule: Schedule, made: list[str], now: int) -> Schedule:
    """The schedule after the firing, with its last run unknown: only what the firing sets is written."""
    return advanced(firing, msgspec.structs.replace(schedule, last=UNKNOWN_LAST), made, now)
