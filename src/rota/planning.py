"""Planning against a store: which schedules an app's origin has there, what a deploy would change, and doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import VersionConflict
from rota.model.planning import Planned, plan_changes
from rota.reading import all_schedules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rota.model.edit import Edit
    from rota.model.schedule import Origin, Schedule, ScheduleSpec
    from rota.store.contract import Store

BATCH = 500


def plan_schedules(
    store: Store, declared: Mapping[str, ScheduleSpec], origin: Origin, new_id: Callable[[], str]
) -> list[Planned]:
    """What would change, were this deployed now."""
    existing = {schedule.id: schedule for schedule in all_schedules(store) if _matters(schedule, declared, origin)}
    return plan_changes(declared, existing, origin, store.now(), new_id)


def apply_plan(store: Store, planned: Sequence[Planned]) -> int:
    """Make the planned changes; answers how many. VersionConflict where something changed since."""
    edits = [one.edit for one in planned if one.edit is not None]
    refused = [name for batch in _batches(edits) for name in store.edit_schedules(batch)]
    if refused:
        raise VersionConflict(
            f"{', '.join(refused)} changed while this was applied, and kept that change; plan again and look"
        )
    return len(edits)


def _matters(schedule: Schedule, declared: Mapping[str, ScheduleSpec], origin: Origin) -> bool:
    is_own = (schedule.origin.kind, schedule.origin.app) == (origin.kind, origin.app)
    return is_own or schedule.id in declared


def _batches(edits: Sequence[Edit]) -> Iterable[list[Edit]]:
    return (list(edits[start : start + BATCH]) for start in range(0, len(edits), BATCH))
