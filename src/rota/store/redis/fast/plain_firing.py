"""Fires schedules that only make their job with a script of its own, in a sixth of the client's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.failpoints import reach
from rota.store.redis.adding import joined, request_of
from rota.store.redis.codec import pack_last, pack_schedule, schedule_head
from rota.store.shared.batching import number_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.schedules.firing import Firing
    from rota.model.schedules.schedule import Schedule
    from rota.store.redis.connection import Connection

    Advance = Callable[[Firing, Schedule, list[str], int], Schedule]

MOST_TRIES = 2  # before the schedules are read


def fire_plain(connection: Connection, firings: Sequence[Firing], now: int | None, advance: Advance) -> int:
    """Fire the first of some schedules, up to one that is blocked or does more than make its job; returns how many."""
    number = number_plain(firings)
    for _ in range(MOST_TRIES):
        unblocked = _fire_all(connection, firings[:number], now, advance) if number else 0
        if unblocked == number:
            return number
        number = unblocked
    return 0


def _fire_all(connection: Connection, firings: Sequence[Firing], now: int | None, advance: Advance) -> int:
    """Fire all or none; returns how many come before the first that is blocked."""
    while True:
        request = _request(firings, connection.clock.now() if now is None else now, advance)
        reach("fire.before_commit")
        reply = connection.call("fire", now=now, is_work=True, **request)
        if reply.body[0] == b"blocked":
            return int(reply.body[1]) - 1
        if reply.body[0] == b"fired":
            reach("fire.after_commit")
            return len(firings)
        connection.clock.reset(reply.now)


def _request(firings: Sequence[Firing], at: int, advance: Advance) -> dict[str, Any]:
    """Firings as the script takes them: their jobs, and each schedule before and after."""
    jobs = [firing.shots[0].job for firing in firings]
    after = [advance(firing, firing.schedule, [job.id], at) for firing, job in zip(firings, jobs, strict=True)]
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
