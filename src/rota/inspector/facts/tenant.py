"""Defines tenants, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.inspector.facts.schedule import PauseFacts, pause_facts
from rota.inspector.facts.values import filled
from rota.model.tenant import OnZoneChange

if TYPE_CHECKING:
    from rota.inspector.tenant_view import TenantView


class TenantFacts(Struct, kw_only=True):
    """A tenant."""

    name: str
    version: int
    state: Literal["open", "paused"]
    tz: str
    queue: str | None
    priority: int | None
    on_zone_change: OnZoneChange
    description: str
    pause: PauseFacts | None  # None as soon as it has ended
    problem: str | None  # why its record cannot be read, if it cannot
    created_at: datetime
    updated_at: datetime


def tenant_facts(tenant: TenantView, now: int) -> TenantFacts:
    pause = tenant.record.paused_at(now)
    return filled(TenantFacts, tenant, state="paused" if pause else "open", pause=pause_facts(pause))
