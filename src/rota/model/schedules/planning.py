"""Plans what a deploy would change about the schedules of its own origin, before it changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from rota.errors import Refused
from rota.model.schedules import wording
from rota.model.schedules.edit import Edit, register, retire
from rota.model.schedules.firing import start_of
from rota.model.schedules.never import why_never
from rota.model.schedules.origin import describe_origin
from rota.model.schedules.schedule import Origin, Schedule, ScheduleSpec
from rota.model.schedules.slots import next_slot
from rota.model.secrets.redaction import DEFAULT, Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

SHOWN_RUNS = 3

Kind = Literal["add", "re-time", "change", "restore", "retire", "refused", "newer"]


class Planned(Struct, frozen=True, kw_only=True):
    """The planned change of one schedule. Schedules that stay as they are have none."""

    id: str
    kind: Kind
    before: Schedule | None = None
    after: Schedule | None = None
    edit: Edit | None = None
    says: list[str] = []  # what differs, or why nothing is done

    def runs(self, schedule: Schedule | None, now: int) -> list[int]:
        """When its next few jobs may start."""
        runs: list[int] = []
        slot = next_slot(schedule, now) if schedule is not None and schedule.due_at is not None else None
        while schedule is not None and slot is not None and len(runs) < SHOWN_RUNS:
            runs.append(start_of(schedule, slot))
            slot = next_slot(schedule, slot)
        return runs


def plan_changes(
    declared: Mapping[str, ScheduleSpec],
    existing: Mapping[str, Schedule],
    origin: Origin,
    now: int,
    new_id: Callable[[], str],
    kept: Container[str] = (),
    redaction: Redaction = DEFAULT,
) -> list[Planned]:
    """The planned changes of all that is declared, and of all that this origin had and no longer has; by id.

    The schedules in `kept` are declared elsewhere in the same deploy, which takes them over.
    """
    found = [
        _declared(name, spec, existing.get(name), origin, now, new_id, redaction) for name, spec in declared.items()
    ]
    gone = [
        schedule
        for name, schedule in existing.items()
        if name not in declared and name not in kept and _is_of(schedule, origin)
    ]
    found += [_gone(schedule, origin, now) for schedule in gone]
    return sorted((planned for planned in found if planned is not None), key=lambda planned: planned.id)


def _declared(
    name: str,
    spec: ScheduleSpec,
    existing: Schedule | None,
    origin: Origin,
    now: int,
    new_id: Callable[[], str],
    redaction: Redaction,
) -> Planned | None:
    try:
        edit = register(existing, name, spec, origin, now, new_id)
    except Refused as err:
        return Planned(id=name, kind="refused", before=existing, says=[str(err)])
    if existing is None or edit is None:
        return (
            _unchanged(name, spec, existing)
            if edit is None
            else Planned(id=name, kind="add", after=edit.after, edit=edit, says=_warned(edit, now))
        )
    says = [*_moved(existing.origin, origin), *differences(existing.spec, spec, redaction)]
    if existing.origin.is_retired:
        return Planned(id=name, kind="restore", before=existing, after=edit.after, edit=edit, says=says)
    if not says:
        return None  # only the version of its origin is recorded
    says += _warned(edit, now)
    kind: Kind = "change" if existing.spec.timing == spec.timing else "re-time"
    return Planned(id=name, kind=kind, before=existing, after=edit.after, edit=edit, says=says)


def _warned(edit: Edit, now: int) -> list[str]:
    """A warning if the schedule can never run: its times may have passed since they were written."""
    why = why_never(edit.after, now) if not edit.jobs else None
    return [] if why is None else [f"warning: it has no run ahead: {why}"]


def _moved(before: Origin, after: Origin) -> list[str]:
    return [] if before.name == after.name else [f"defined by: {describe_origin(before)} → {describe_origin(after)}"]


def _unchanged(name: str, spec: ScheduleSpec, existing: Schedule | None) -> Planned | None:
    """No change: the schedule is the same already, or a newer version has declared it."""
    if existing is None or (existing.spec == spec and not existing.origin.is_retired):
        return None
    done = "retired" if existing.origin.is_retired else "set"
    says = [f"version {existing.origin.version} of its app has {done} it; an older one changes nothing"]
    return Planned(id=name, kind="newer", before=existing, says=says)


def _gone(schedule: Schedule, origin: Origin, now: int) -> Planned | None:
    edit = retire(schedule, origin, now)
    if edit is None:
        return None
    says = ["no longer declared: it stops, and its history stays"]
    return Planned(id=schedule.id, kind="retire", before=schedule, after=edit.after, edit=edit, says=says)


def _is_of(schedule: Schedule, origin: Origin) -> bool:
    return (schedule.origin.kind, schedule.origin.app) == (origin.kind, origin.app)


def differences(before: ScheduleSpec, after: ScheduleSpec, redaction: Redaction = DEFAULT) -> list[str]:
    """The differences of another spec, one line per field."""
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    return [str(line) for line in wording.differences(old, new, wording.OF_SCHEDULE, redaction)]
