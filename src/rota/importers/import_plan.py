"""Writes imported schedules to a store: new ones are added, those of an earlier import are updated.

The origin of an imported schedule names its source. An edit by hand, in code or in rota.yaml changes the origin, so
that the next import leaves the schedule alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rota.errors import Refused, RotaError
from rota.importers.found import Item
from rota.inspector.reading import all_schedules
from rota.model.schedules.planning import Planned
from rota.model.schedules.schedule import Origin, Schedule
from rota.model.schedules.slots import next_slot
from rota.store.contract import ScheduleFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from rota.client.schedules import Schedules
    from rota.store.contract import Store

    class Target(Protocol):
        """The target of an import: an app's store, and the verbs about schedules."""

        @property
        def schedules(self) -> Schedules: ...

        def open(self) -> Store: ...


STATES = {"refused": "left", "newer": "left"}


class PlannedItem(Struct, frozen=True, kw_only=True):
    """What becomes of one item: add, restore, change, re-time, unchanged, left or unsupported."""

    item: Item
    state: str
    says: tuple[str, ...] = ()
    after: Schedule | None = None  # what the store would hold


class Import(Struct, frozen=True, kw_only=True):
    """Everything that an import would do."""

    origin: Origin
    items: list[PlannedItem]
    planned: list[Planned]
    gone: list[str]  # schedules of an earlier import whose source no longer has them


class _All:
    """Contains every name, because an import retires no other schedules."""

    def __contains__(self, name: object) -> bool:
        return True


def origin_of(system: str, source: str) -> Origin:
    return Origin("import", f"{system} {source}")


def plan_import(
    target: Target, origin: Origin, items: Sequence[Item], *, retires: bool, left: Mapping[str, str] | None = None
) -> Import:
    """What an import would change; nothing is changed. `left`: the ids that it leaves alone, each with the reason."""
    store = target.open()
    known = {one.id: one for one in store.get_schedules(list(left))} if left else {}
    untouched = {name: (left or {})[name] for name in known}  # one that was removed is made again
    specs = {item.id: item.spec for item in items if item.spec is not None and item.id not in untouched}
    named = {item.id for item in items}
    before = [one for one in all_schedules(store, ScheduleFilter(origin=origin.name)) if not one.origin.is_retired]
    kept = named | set(left or ())  # an item that was taken over may be deleted in the old system
    planned = list(target.schedules.plan(specs, origin, kept=kept if retires else _All()))
    by_id = {one.id: one for one in planned}
    existing = {one.id: one for one in store.get_schedules(list(specs))}
    return Import(
        origin=origin,
        items=[
            PlannedItem(item=item, state="left", says=(untouched[item.id],), after=known.get(item.id))
            if item.id in untouched
            else _planned_item(item, by_id.get(item.id), existing.get(item.id))
            for item in items
        ],
        planned=planned,
        gone=[one.id for one in before if one.id not in kept],
    )


def _planned_item(item: Item, planned: Planned | None, existing: Schedule | None) -> PlannedItem:
    if item.spec is None:
        return PlannedItem(item=item, state="unsupported", says=(item.reason,))
    if planned is None or (planned.edit is None and existing is not None and existing.spec == item.spec):
        return PlannedItem(item=item, state="unchanged", after=existing)
    after = planned.after or planned.before
    return PlannedItem(item=item, state=STATES.get(planned.kind, planned.kind), says=tuple(planned.says), after=after)


def apply_import(target: Target, found: Import, *, by: str) -> int:
    """Make the planned changes; answers how many. Schedules that are paused at their source are paused here."""
    changed = target.schedules.apply(found.planned, by=by)
    for one in found.items:
        if one.state == "add" and one.item.pause is not None:
            reason, until = one.item.pause
            target.schedules.pause(one.item.id, reason=reason, until=until, by=by)
    return changed


def coming(schedule: Schedule | None, now: int, count: int) -> list[int]:
    """The next times of a schedule, whether it is on or off."""
    runs: list[int] = []
    try:
        slot = None if schedule is None else next_slot(schedule, now)
        while schedule is not None and slot is not None and len(runs) < count:
            runs.append(slot)
            slot = next_slot(schedule, slot)
    except (RotaError, ValueError):
        return []
    return runs


def check_strict(found: Import) -> None:
    """With --strict, one item that Rota cannot express refuses the whole import before anything is written."""
    unsaid = [one.item.name for one in found.items if one.state == "unsupported"]
    if unsaid:
        raise Refused(
            f"{', '.join(unsaid[:5])}{' and others' if len(unsaid) > 5 else ''} cannot be imported, and --strict was "
            "given; nothing was written. Take them out of the source, or leave --strict out"
        )
