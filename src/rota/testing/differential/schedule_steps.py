"""Makes random operations on schedules: makes, edits, fires and reads them, in time, late and on stale versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.audit_record import Author
from rota.model.micros import SECOND
from rota.model.schedules.edit import (
    disable,
    enable,
    follow_pause,
    follow_spec,
    mark_broken,
    pause,
    register,
    remove,
    resume,
    trigger_now,
    with_audit,
)
from rota.model.schedules.firing import plan, plan_early
from rota.model.schedules.schedule import CATCHUPS, OVERLAPS, Origin, Pause, ScheduleSpec
from rota.store.contract import ScheduleFilter
from rota.testing.differential.operation import Operation
from rota.testing.differential.walk import QUEUES, SCHEDULES
from rota.testing.store_suite.builders import HOUR, MINUTE

if TYPE_CHECKING:
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.testing.differential.walk import Walk

TENANTS = ("", "", "acme", "globex")
EARLY = MINUTE  # long, so that it happens often in a walk
TRIGGERS = ("every 1m", "every 30s", "every 5m", "every 1h", "cron * * * * *", "cron */10 * * * *")


# Authors.


def make(walk: Walk) -> Operation | None:
    """Register or change a schedule, decided on what was read of it earlier; it may not have existed then."""
    edits = [edit for edit in (_registered(walk) for _ in range(walk.random.choice((1, 1, 2)))) if edit]
    return Operation("edit_schedules", (edits,), {"now": walk.now}) if edits else None


def _registered(walk: Walk) -> Edit | None:
    name = walk.random.choice(SCHEDULES)
    known = [schedule for schedule in walk.schedules if schedule.id == name]
    fresh = next(iter(walk.reference.get_schedules([name])), None)
    views: list[Schedule | None] = [fresh, *known[-1:], *([None] if walk.chance(0.1) else [])]
    existing = walk.random.choice(views)
    origin = existing.origin if existing else Origin("code", "shop", walk.random.choice(("", "1.0")))
    return register(existing, name, _spec(walk), origin, walk.now, walk.new_id)


def _spec(walk: Walk) -> ScheduleSpec:
    choice = walk.random.choice
    return ScheduleSpec(
        trigger=choice(TRIGGERS),
        task=choice(("mail.send", "pay")),
        payload=choice(("[]", '{"n": "☕"}')),
        queue=choice(QUEUES),
        priority=choice((0, 0, 3)),
        key=choice(("", "", "", "k1", "k2", "schedule:s1")),
        key_for=choice((0, 0, 3 * MINUTE)),
        tz=choice(("UTC", "Europe/Berlin")),
        overlap=choice(OVERLAPS),
        catchup=choice(CATCHUPS),
        catchup_limit=choice((3, 5)),
        grace=choice((0, 0, 10 * SECOND, MINUTE)),
        jitter=choice((0, 0, 20 * SECOND)),
        start=choice((None, None, walk.now + 2 * MINUTE)),
        end=choice((None, None, walk.now + HOUR)),
        max_runs=choice((None, None, None, 5)),
        run_on_start=walk.chance(0.2),
        enabled=walk.chance(0.9),
        description=choice(("", "Zürich ☕")),
        lookahead=choice((0, 0, 90 * SECOND, 10 * MINUTE)),
        tenant=choice(TENANTS),
    )


# Operators.


def edit(walk: Walk) -> Operation | None:
    if not walk.schedules:
        return None
    chosen = [walk.random.choice(walk.schedules[-6:]) for _ in range(walk.random.choice((1, 1, 2)))]
    edits = [edit for edit in (_edited(walk, schedule) for schedule in chosen) if edit is not None]
    return Operation("edit_schedules", (edits,), {"now": walk.now}) if edits else None


def _edited(walk: Walk, known: Schedule) -> Edit | None:
    until = walk.random.choice((None, None, walk.now + 3 * MINUTE, walk.now))
    edits = [
        pause(known, walk.now, reason="rest", by=walk.random.choice(("ann", "")), until=until),
        resume(known, walk.now),
        resume(known, walk.now),
        disable(known, walk.now) if walk.chance(0.5) else None,
        enable(known, walk.now),
        enable(known, walk.now),
        trigger_now(known, walk.now, walk.new_id(), by="ann"),
        trigger_now(known, walk.now, walk.new_id()),
        remove(known, walk.now) if walk.chance(0.4) else None,
        mark_broken(known, walk.now, "no such zone") if walk.chance(0.2) else None,
        follow_pause(known, Pause(walk.now, "unpaid", "ann", until, tenant="acme"), walk.now),
        follow_pause(known, None, walk.now),
        follow_pause(known, None, walk.now),
        _moved(walk, known),
    ]
    edit = walk.random.choice(edits)
    return edit if edit is None else with_audit(edit, known, Author(record_id=walk.new_id(), by="ann", verb="edited"))


def _moved(walk: Walk, known: Schedule) -> Edit | None:
    """An edit of its tenant's timezone, which may keep the announced run."""
    spec = msgspec.structs.replace(known.spec, tz=walk.random.choice(("Asia/Tokyo", "UTC")))
    return follow_spec(known, spec, walk.now, keeps_next=walk.chance(0.5))


# Schedulers.


def look_for_due(walk: Walk) -> Operation:
    return Operation("due_schedules", (walk.random.choice((1, 2, 100)),), {"now": walk.now})


def fire(walk: Walk) -> Operation | None:
    """Firings that a scheduler decides on what is due. If two decide at once, the second has an old version."""
    due = walk.reference.due_schedules(walk.random.choice((1, 100)), now=walk.now).schedules
    again = due[:1] if walk.chance(0.1) else []
    firings = [plan(schedule, walk.now, walk.new_id) for schedule in [*due, *again]]
    return Operation("fire", (firings,), {"now": walk.now}) if firings else None


def fire_late(walk: Walk) -> Operation | None:
    """Firings that were decided earlier, on schedules that have changed since."""
    known = [schedule for schedule in walk.schedules if schedule.due_at is not None and schedule.due_at <= walk.now]
    if not known:
        return None
    return Operation("fire", ([plan(walk.random.choice(known), walk.now, walk.new_id)],), {"now": walk.now})


def fire_early(walk: Walk) -> Operation | None:
    """Firings that a scheduler records before they are due."""
    soon = [schedule for schedule in walk.schedules if walk.now < (schedule.due_at or 0) <= walk.now + EARLY]
    planned = [plan_early(schedule, schedule.due_at or 0, walk.new_id) for schedule in soon[:3]]
    firings = [firing for firing in planned if firing is not None]
    return Operation("fire", (firings,), {"now": walk.now}) if firings else None


# Readers.


def get(walk: Walk) -> Operation:
    names = [*walk.random.sample(SCHEDULES, 2), "nobody"]
    return Operation("get_schedules", (names,))


def list_all(walk: Walk) -> Operation:
    choice = walk.random.choice
    where = ScheduleFilter(tenant=choice((None, None, "acme")), origin=choice((None, None, "code:shop", "api:")))
    return Operation("list_schedules", (where,), {"limit": choice((1, 3, 50))})


def list_occurrences(walk: Walk) -> Operation:
    start = walk.now - walk.random.choice((MINUTE, HOUR, 30 * HOUR))
    end = walk.now + walk.random.choice((-MINUTE, 1, HOUR))
    name = walk.random.choice((*SCHEDULES, "nobody"))
    return Operation("list_occurrences", (name, start, end), {"limit": walk.random.choice((1, 3, 50))})
