"""Checks that each schedule has what its tenant says, however many processes died while it was changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.inspector.reading import all_schedules
from rota.model.tenant import KIND, UNSETTLED, Tenant
from rota.testing.simulation.checks.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.schedules.schedule import Pause, Schedule
    from rota.store.contract import Store

FOLLOWED = "I12: schedules follow their tenants"


def check_tenants(store: Store, step: int, now: int) -> list[Violation]:
    """Call it at the end, when nodes have had time to finish the changes that others began."""
    tenants = {entry.name: msgspec.json.decode(entry.data, type=Tenant) for entry in store.list_entries(KIND).items}
    texts = [f"the change of tenant {entry.name} is still pending" for entry in store.list_entries(UNSETTLED).items]
    for schedule in all_schedules(store):
        if schedule.spec.tenant in tenants:
            texts += _differences(schedule, tenants[schedule.spec.tenant], now)
    return [Violation(FOLLOWED, step, text) for text in texts]


def _differences(schedule: Schedule, tenant: Tenant, now: int) -> Iterator[str]:
    spec = schedule.spec
    for name, own in spec.follows.items():
        said = getattr(tenant, name)
        expected = own if said is None else said
        if getattr(spec, name) != expected:
            yield f"{schedule.id} has {name}={getattr(spec, name)!r}, its tenant {spec.tenant} says {expected!r}"
    is_paused = _lasts(tenant.pause, now)
    if is_paused != _lasts(schedule.tenant_pause, now):
        yield f"{schedule.id} is {'not ' if is_paused else ''}paused with its tenant {spec.tenant}"


def _lasts(pause: Pause | None, now: int) -> bool:
    return pause is not None and (pause.until is None or pause.until > now)
