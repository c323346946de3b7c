"""Schedules move between two systems at a boundary: every store keeps it, and each time has its turn once."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from every_store import DURABLE, fresh_place
from rota.errors import Refused
from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.model.schedules.edit import disable, register
from rota.model.schedules.firing import plan
from rota.model.schedules.handover import give_back, take_over
from rota.model.schedules.schedule import Ahead, Origin, Schedule, ScheduleSpec
from rota.store.contract import JobFilter, LedgerSpan

MINUTE = 60 * SECOND
NOON = 1_790_000_000 * SECOND // MINUTE * MINUTE
SPEC = ScheduleSpec(trigger="cron * * * * *", task="shop.tick", enabled=False, overlap="allow", grace=10 * MINUTE)
numbers = count(1)


def new_id() -> str:
    return f"job{next(numbers)}"


def imported(at: int) -> Schedule:
    return register(None, "tick", SPEC, Origin("import", "beat"), at, new_id).after


def edited(store, edit, now: int) -> Schedule:
    assert store.edit_schedules([edit], now=now) == []
    return store.get_schedules(["tick"])[0]


def fired(store, now: int) -> Schedule:
    """Fire what is due."""
    (schedule,) = store.get_schedules(["tick"])
    store.fire([plan(schedule, now, new_id)], now=now)
    return store.get_schedules(["tick"])[0]


def jobs_of(store) -> list[int]:
    found = store.list_jobs(JobFilter(schedule_id="tick"), limit=100).items
    assert {job.state for job in found} <= {State.QUEUED}
    return sorted(job.fire_at for job in found)


def ledger_of(store) -> list[tuple[str, int]]:
    (page,) = store.list_many_occurrences([LedgerSpan("tick", 0, NOON * 2)], limit=100)
    return [(one.outcome, one.count) for one in page.items if one.job_id is None]


@pytest.mark.parametrize("kind", ["memory", *DURABLE])
def test_the_times_after_the_boundary_are_open_and_those_before_it_are_not(tmp_path, kind):
    with fresh_place(kind, tmp_path).opened() as store:
        made = register(None, "tick", SPEC, Origin("import", "beat"), NOON, new_id)
        schedule = edited(store, made, NOON)
        since, now = NOON - 2 * MINUTE + SECOND, NOON + 2 * SECOND  # two times were not run there
        schedule = edited(store, take_over(schedule, SPEC, since, now), now)
        assert (schedule.is_enabled, schedule.next_at) == (True, NOON - MINUTE)
        schedule = fired(store, now)
        assert jobs_of(store) == [NOON - MINUTE, NOON]

        back = NOON + MINUTE + 2 * SECOND
        schedule = fired(store, back)
        schedule = edited(store, give_back(schedule, back), back)
        assert (schedule.is_enabled, schedule.fired_through) == (False, NOON + MINUTE)
        assert jobs_of(store) == [NOON - MINUTE, NOON, NOON + MINUTE]  # those that wait are not revoked

        later = NOON + 4 * MINUTE + 2 * SECOND
        schedule = edited(store, take_over(schedule, SPEC, NOON + 3 * MINUTE + SECOND, later), later)
        fired(store, later)
        assert jobs_of(store) == [NOON + step * MINUTE for step in (-1, 0, 1, 4)]
        assert ledger_of(store) == [("skipped", 2)]  # the other system ran them


def test_times_that_rota_has_fired_stay_fired():
    schedule = msgspec.structs.replace(imported(NOON), is_enabled=True, fired_through=NOON + 5 * MINUTE)
    after = take_over(schedule, SPEC, NOON, NOON + 5 * MINUTE).after
    assert after.fired_through == NOON + 5 * MINUTE
    last = msgspec.structs.replace(schedule.last, fired_for=NOON + 3 * MINUTE)
    off = disable(msgspec.structs.replace(schedule, last=last), NOON + 5 * MINUTE).after
    assert take_over(off, SPEC, NOON, NOON + 6 * MINUTE).after.fired_through == NOON + 3 * MINUTE


def test_what_is_off_or_made_ahead_is_not_given_back():
    assert give_back(imported(NOON), NOON) is None
    ahead = msgspec.structs.replace(imported(NOON), is_enabled=True, ahead=Ahead(through=NOON + MINUTE))
    with pytest.raises(Refused, match="lookahead"):
        give_back(ahead, NOON)
