"""Firings: those that just make their job take one round trip by the batch; the others are decided on what is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.failpoints import reach
from rota.model.firing import fired, place
from rota.model.job import accept
from rota.model.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.redis.adding import joined, request_of
from rota.store.redis.desk import text_of
from rota.store.redis.packing import UNKNOWN_LAST, pack_last, pack_schedule, schedule_head
from rota.store.redis.schedules import MOST_AT_ONCE, Want, put_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.model.schedule import Schedule
    from rota.store.redis.desk import Desk
    from rota.store.redis.draft import Draft
    from rota.store.redis.schedules import Found, ScheduleBook

MOST_TRIES = 2  # to fire without a look, before each is looked at


class Firer:
    """Fires one namespace's schedules."""

    def __init__(self, desk: Desk, schedules: ScheduleBook) -> None:
        self._desk = desk
        self._schedules = schedules

    def fire(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        """Make the jobs of firings and advance their schedules, except those that somebody else changed first."""
        results: list[Fired] = []
        for start in range(0, len(firings), MOST_AT_ONCE):
            results += self._fire_batch(firings[start : start + MOST_AT_ONCE], now)
        return results

    def _fire_batch(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        """Places in line go by the order of firings, also where only some of them need a closer look."""
        plain = _plain_ones(firings)
        places = None if len(plain) == len(firings) else self._reserve(firings)
        for _ in range(MOST_TRIES):
            seats = [places[n][0] for n in plain] if places else None
            blocked = self._fire_plain([firings[n] for n in plain], seats, now)
            if not blocked:
                break
            places = places or self._reserve(firings)
            plain = [n for n in plain if firings[n].shots[0].job.id not in blocked]
        else:
            plain = []
        done = {n: Fired.of(firings[n].schedule.id, [firings[n].shots[0].job.id], ()) for n in plain}
        rest = [n for n in range(len(firings)) if n not in done]
        entries = [(_want(firings[n], places[n] if places else ()), firings[n]) for n in rest]
        done |= zip(rest, self._schedules.decide("fire", entries, self._decided, now), strict=True)
        return [done[n] for n in range(len(firings))]

    def _reserve(self, firings: Sequence[Firing]) -> list[range]:
        """Places in line for each firing's jobs."""
        last = self._desk.look(reserve=sum(len(firing.shots) for firing in firings))[3]
        places = []
        for firing in firings:
            places.append(range(last + 1, last + 1 + len(firing.shots)))
            last += len(firing.shots)
        return places

    # Without a look.

    def _fire_plain(self, firings: Sequence[Firing], seats: list[int] | None, now: int | None) -> set[str]:
        """Fire all or none; the jobs that something stands in the way of. Dates are what is known of the clock."""
        link = self._desk.link
        while firings:
            at = link.estimated_now() if now is None else now
            ask = _request(firings, at)
            reach("fire.before_commit")
            reply = link.call("fire", now=text_of(now), is_work=True, seats=seats or False, **ask)
            if reply.body[0] == b"blocked":
                return {job_id.decode() for job_id in reply.body[1]}
            if reply.body[0] == b"fired":
                reach("fire.after_commit")
                break
            link.reset_clock(reply.now)
        return set()

    # Upon what a look finds.

    def _decided(self, firing: Firing, found: Found, now: int) -> tuple[Draft | None, Fired]:
        schedule = found.schedule
        if schedule is None or not firing.holds_for(schedule.version, schedule.created_at):
            return None, Fired(schedule_id=found.name, is_accepted=False)
        draft = found.draft(self._desk, now)
        holder = next(filter(None, map(draft.key_holder, firing.keys)), None)
        if firing.must_wait(draft.slot_holder(found.name), holder):
            return None, Fired(schedule_id=found.name, is_accepted=False)
        made: list[str] = []
        skips = list(firing.skips)
        for shot, was_made in zip(firing.shots, found.made, strict=True):
            if was_made:
                continue  # by a schedule of that name, before the clock stepped back
            live = draft.slot_holder(found.name) if shot.when_busy != "allow" else None
            held = draft.held_of(found.name) if live else []
            last_held = max(held, key=lambda job: job.seq).id if held else None
            placement = place(shot, live, last_held, draft.key_holder(shot.job.key))
            if placement.skip is not None:
                skips.append(placement.skip)
            if placement.job is not None:
                draft.insert(accept(placement.job, now, next(found.places)))
                made.append(placement.job.id)
            if placement.cancels is not None:
                draft.stop(placement.cancels, "replaced by the next occurrence")
                draft.forget_notes(found.name)
        for skip in skips:
            draft.record(of_skip(found.name, skip))
        advanced = _advanced(firing, schedule, made, now)
        put_schedule(draft, advanced, schedule)
        draft.note(found.name, pack_last(advanced.last))
        return draft, Fired.of(found.name, made, skips)


def _plain_ones(firings: Sequence[Firing]) -> list[int]:
    """Numbers of those that make one job and nothing else, if nothing stands in its way: the first of each schedule,
    and of each key."""
    backwards = list(enumerate(firings))[::-1]
    first = {firing.schedule.id: n for n, firing in backwards}
    first_of_key = {key: n for n, firing in backwards for key in firing.keys}
    return [
        n
        for n, firing in enumerate(firings)
        if first[firing.schedule.id] == n and firing.is_plain and all(first_of_key[key] == n for key in firing.keys)
    ]


def _request(firings: Sequence[Firing], at: int) -> dict[str, Any]:
    """What the script is told: jobs as they would be added, and each schedule before and after."""
    jobs = [accept(firing.shots[0].job, at) for firing in firings]
    after = [_advanced(firing, firing.schedule, [job.id], at) for firing, job in zip(firings, jobs, strict=True)]
    schedules = joined([pack_schedule(schedule) for schedule in after])
    return {
        **request_of(jobs, at),
        "names": [schedule.id for schedule in after],
        "guards": [schedule_head(firing.schedule).decode() for firing in firings],
        "slots": [job.fire_at for job in jobs],
        "schedules": schedules["records"],
        "schedule_sizes": schedules["sizes"],
        "lasts": [pack_last(schedule.last) for schedule in after],
        "dues": [part for schedule in after if schedule.due_at is not None for part in (schedule.due_at, schedule.id)],
        "spent": [schedule.id for schedule in after if schedule.due_at is None],
    }


def _want(firing: Firing, places: Sequence[int]) -> Want:
    return Want(
        firing.schedule.id,
        firing.schedule.fired_through,
        [shot.job.id for shot in firing.shots],
        [shot.job.fire_at for shot in firing.shots],
        any(shot.when_busy != "allow" for shot in firing.shots),
        places=places,
    )


def _advanced(firing: Firing, schedule: Schedule, made: list[str], now: int) -> Schedule:
    """The schedule as it is, after the firing, with its last run unknown: only what the firing sets is written."""
    known = msgspec.structs.replace(firing, schedule=msgspec.structs.replace(schedule, last=UNKNOWN_LAST))
    return fired(known, len(made), now, made[-1] if made else None)
