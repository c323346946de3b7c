"""Fires schedules that only make their job with a script of its own, in a sixth of the client's time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rota.store.redis.adding import request_of
from rota.store.redis.codec import UNKNOWN_LAST, binary, encode, pack_last, pack_schedule, schedule_head
from rota.store.shared.batching import number_plain
from rota.store.shared.placing import advanced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.firing import Firing
    from rota.model.schedules.schedule import Schedule
    from rota.store.redis.connection import Connection
    from rota.store.redis.indexes import Command

MOST_TRIES = 2  # before the schedules are read


def fire_plain(connection: Connection, firings: Sequence[Firing], now: int | None) -> int:
    """Fire the first of some schedules, up to one that is blocked or does more than make its job; returns how many."""
    number = number_plain(firings)
    for _ in range(MOST_TRIES):
        some = firings[:number]
        number = connection.add("fire", "add", partial(_values, some), now) or 0 if some else 0
        if number == len(some):
            return len(some)
    return 0


def _values(firings: Sequence[Firing], at: int) -> list[bytes]:
    """Firings as the script takes them: their jobs, what each schedule must still be, and what advances it."""
    jobs = [firing.shots[0].job for firing in firings]
    request = request_of(jobs, at)
    request["names"] = [firing.schedule.id for firing in firings]
    request["guards"] = [schedule_head(firing.schedule).decode() for firing in firings]
    request["fire_times"] = [job.fire_at for job in jobs]
    request["commands"] += _advance_commands([_advanced(firing, at) for firing in firings])
    return [encode(request)]


def _advanced(firing: Firing, at: int) -> Schedule:
    """The schedule after its firing, with its last run unknown: only what the firing sets of it is written."""
    before = msgspec.structs.replace(firing.schedule, last=UNKNOWN_LAST)
    return advanced(firing, before, [firing.shots[0].job.id], at)


def _advance_commands(schedules: Sequence[Schedule]) -> list[Command]:
    """The commands that write schedules after their firings."""
    due = [part for one in schedules if one.due_at is not None for part in (one.due_at, one.id)]
    spent = [one.id for one in schedules if one.due_at is None]
    return [
        ["HSET", "schedule", *(part for one in schedules for part in (one.id, binary(pack_schedule(one))))],
        *(["HSET", f"last:{one.id}", *pack_last(one.last)] for one in schedules),
        *([["ZADD", "dues", *due]] if due else []),
        *([["ZREM", "dues", *spent]] if spent else []),
    ]
