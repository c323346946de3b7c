"""Moves a schedule between Rota and another system by edits, so that each of its times belongs to exactly one of them.

The other system runs the times up to an instant, and Rota those after it, or the other way round. The schedule's
version guards both edits, so that the boundary cannot move while it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.errors import Refused
from rota.model.schedules.edit import Edit
from rota.model.schedules.slots import DISABLED, next_slot, skip_range, with_ahead

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule, ScheduleSpec


def take_over(schedule: Schedule, spec: ScheduleSpec, since: int, now: int) -> Edit:
    """Turn on a schedule whose times up to `since` the other system has run. Those after it are open, also if they have
    passed: catch-up decides about them.

    One that was retired is no longer. Times that Rota has fired itself stay fired. The generation stays, so that jobs
    which still wait are not revoked.
    """
    through = max(since, schedule.fired_through if schedule.is_enabled else schedule.last.fired_for or 0)
    skips = [] if schedule.is_enabled else skip_range(schedule, through, "skipped", DISABLED)
    after = msgspec.structs.replace(
        schedule,
        spec=spec,
        origin=msgspec.structs.replace(schedule.origin, is_retired=False),
        is_enabled=True,
        fired_through=through,
        version=schedule.version + 1,
        updated_at=now,
        problem=None,
        ahead=None,
    )
    after = msgspec.structs.replace(after, next_at=next_slot(after, through))
    return Edit(after=after, expect_version=schedule.version, skips=skips)


def give_back(schedule: Schedule, now: int) -> Edit | None:
    """Turn off a schedule that the other system continues after `fired_through`. Jobs that wait are not revoked:
    their times are Rota's. None if it is off."""
    if not schedule.is_enabled:
        return None
    if schedule.has_jobs_ahead:
        raise Refused(
            f"schedule '{schedule.id}' has jobs that were made before they are due; set its lookahead to 0, and give "
            "it back when they have run"
        )
    after = msgspec.structs.replace(schedule, is_enabled=False, version=schedule.version + 1, updated_at=now)
    return Edit(after=with_ahead(after, off_at=now), expect_version=schedule.version)
