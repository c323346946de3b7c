"""Computes the effect of a change of a tenant on its schedules: their next runs before and after it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.inspector.known_schedule import KnownSchedule
from rota.model.tenant import derive
from rota.store.contract import ScheduleFilter

if TYPE_CHECKING:
    from rota.model.tenant import Tenant
    from rota.store.contract import Store

MOST = 20  # schedules that a preview shows


class MovedRun(Struct, frozen=True, kw_only=True):
    """One schedule's next run, before and after, each in the zone of that time."""

    schedule_id: str
    sentence: str
    rule: str  # as text
    before: datetime | None
    after: datetime | None
    queue: str  # the queue that its jobs would go to
    is_changed: bool


def preview_tenant(store: Store, name: str, tenant: Tenant) -> list[MovedRun]:
    """The first schedules of a tenant, as they would follow it; nothing is changed."""
    now = store.now()
    found = store.list_schedules(ScheduleFilter(tenant=name), limit=MOST).items
    moved = []
    for schedule in found:
        edit = derive(schedule, tenant, now)
        after = schedule if edit is None else edit.after
        old, new = KnownSchedule(schedule, now), KnownSchedule(after, now)
        moved.append(
            MovedRun(
                schedule_id=schedule.id,
                sentence=new.sentence,
                rule=after.spec.trigger if new.problem else str(after.trigger),
                before=old.next_run,
                after=new.next_run,
                queue=after.spec.queue,
                is_changed=edit is not None,
            )
        )
    return moved
