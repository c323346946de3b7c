"""Plans a deploy against a store: which schedules the app's origin has there, and what would change; applies it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import VersionConflict
from rota.inspector.reading import all_schedules
from rota.model.schedules.planning import Planned, plan_changes
from rota.model.secrets.redaction import DEFAULT
from rota.store.contract import ScheduleFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Origin, Schedule, ScheduleSpec
    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store

BATCH = 500


def plan_schedules(
    store: Store,
    declared: Mapping[str, ScheduleSpec],
    origin: Origin,
    new_id: Callable[[], str],
    kept: Container[str] = (),
    redaction: Redaction = DEFAULT,
) -> list[Planned]:
    """The changes that a deploy would make now."""
    existing = {schedule.id: schedule for schedule in all_schedules(store, ScheduleFilter(origin=origin.name))}
    existing |= {
        schedule.id: schedule for schedule in _read(store, [name for name in declared if name not in existing])
    }
    return plan_changes(declared, existing, origin, store.now(), new_id, kept, redaction)


def apply_edits(store: Store, edits: Sequence[Edit]) -> int:
    """Make the planned changes, and return their number. VersionConflict if something changed since."""
    refused = [name for batch in _batches(edits) for name in store.edit_schedules(batch)]
    if refused:
        raise VersionConflict(
            f"{', '.join(refused)} changed while this was applied, and kept that change; plan again and look"
        )
    return len(edits)


def _read(store: Store, names: Sequence[str]) -> list[Schedule]:
    """The schedules of other origins that have a name declared here."""
    batches = (names[start : start + BATCH] for start in range(0, len(names), BATCH))
    return [schedule for batch in batches for schedule in store.get_schedules(batch)]


def _batches(edits: Sequence[Edit]) -> Iterable[list[Edit]]:
    return (list(edits[start : start + BATCH]) for start in range(0, len(edits), BATCH))
