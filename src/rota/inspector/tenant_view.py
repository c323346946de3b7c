"""Shows a tenant to callers: its fields as plain values, its times as datetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import UnknownZone
from rota.model.micros import datetime_of, micros_of, outside_calendar
from rota.model.tenant import Tenant, read_tenant
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from datetime import datetime

    from rota.model.entry import Entry


class TenantView:
    """A tenant as it was when it was read."""

    def __init__(self, entry: Entry) -> None:
        found, problem = read_tenant(entry.data)
        self.record = record = found or Tenant(tz="UTC")
        self.problem = problem or _problem_of(record) or None
        self.name = entry.name
        self.version = entry.version
        self.tz = record.tz
        self.queue = record.queue  # None: its schedules' tasks decide it
        self.priority = record.priority
        self.on_zone_change = record.on_zone_change
        self.description = record.description
        self.pause = record.pause
        self.created_at = datetime_of(record.created_at)
        self.updated_at = datetime_of(record.updated_at)

    def is_paused_at(self, now: datetime) -> bool:
        """Whether all its schedules are paused; a pause may have an end."""
        return self.record.paused_at(micros_of(now)) is not None

    def __repr__(self) -> str:
        return f"<tenant {self.name}: {self.tz}>"


def _problem_of(tenant: Tenant) -> str:
    """Why it cannot be shown as it is stored; empty if it can."""
    try:
        find_zone(tenant.tz)
    except UnknownZone as err:
        return f"cannot be read: {err}"
    until = tenant.pause.until if tenant.pause else None
    return outside_calendar(created_at=tenant.created_at, updated_at=tenant.updated_at, until=until)
