"""Defines tenants: named customers or projects with a timezone and defaults that their schedules take over."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from rota.errors import BadOption
from rota.model.micros import SECOND
from rota.model.schedules.edit import Edit, follow_pause, follow_spec
from rota.model.schedules.schedule import LastRun, Pause, Schedule, ScheduleSpec, is_over, problem_of
from rota.model.schedules.slots import Skip, next_slot
from rota.triggers.zone import DAY, find_zone

OnZoneChange = Literal["recompute", "keep_next"]

KIND = "tenant"  # of its entry
UNSETTLED = "unsettled"  # the kind of entry that names a tenant whose schedules are yet to follow a change
UNSETTLED_SCHEDULES = "unsettled schedules"  # … and of one that names schedules which are yet to follow their tenants


class Tenant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of a tenant. Its schedules decide those that are None."""

    tz: str
    queue: str | None = None
    priority: int | None = None
    on_zone_change: OnZoneChange = "recompute"
    description: str = ""
    pause: Pause | None = None
    created_at: int = 0
    updated_at: int = 0

    def paused_at(self, now: int) -> Pause | None:
        """The pause of all its schedules, if it has not come to its end."""
        return None if is_over(self.pause, now) else self.pause


_decoder = msgspec.json.Decoder(Tenant)


def pack_tenant(tenant: Tenant) -> str:
    return msgspec.json.encode(tenant).decode()


def unpack_tenant(data: str) -> Tenant:
    return _decoder.decode(data)


def read_tenant(data: str) -> tuple[Tenant | None, str]:
    """The tenant, or None and why it cannot be read."""
    try:
        return unpack_tenant(data), ""
    except msgspec.MsgspecError as err:
        return None, f"cannot be read: {err}"


def tenant_facts(tenant: Tenant | None) -> dict[str, Any]:
    """The facts of a tenant that an audit record keeps."""
    if tenant is None:
        return {}
    facts: dict[str, Any] = msgspec.to_builtins(tenant)
    return {name: value for name, value in facts.items() if name not in {"created_at", "updated_at"}}


def check_tenant(tenant: Tenant) -> Tenant:
    if tenant.on_zone_change not in get_args(OnZoneChange):
        raise BadOption(f"on_zone_change={tenant.on_zone_change!r} must be one of {', '.join(get_args(OnZoneChange))}")
    if not isinstance(tenant.description, str):
        raise BadOption(f"description={tenant.description!r} must be text")
    return tenant


def followed(spec: ScheduleSpec, tenant: Tenant | None) -> ScheduleSpec:
    """The spec with the tenant's settings for the fields that its author left open."""
    if not spec.follows:
        return spec
    said = {name: _said(tenant, name) for name in spec.follows}
    fields: dict[str, Any] = {name: spec.follows[name] if value is None else value for name, value in said.items()}
    if fields.get("tz", spec.tz) != spec.tz:
        fields |= _moved_days(spec, str(fields["tz"]))
    return msgspec.structs.replace(spec, **fields)


def derive(schedule: Schedule, tenant: Tenant | None, now: int) -> Edit | None:
    """The next edit that applies the tenant's settings to a schedule; None if they are applied."""
    if problem_of(schedule) is not None:
        return None  # an edit that repairs it sets these fields again
    keeps_next = tenant is not None and tenant.on_zone_change == "keep_next"
    spec = followed(schedule.spec, tenant)
    pause = tenant.paused_at(now) if tenant is not None else None
    if pause is None and is_over(schedule.tenant_pause, now) and schedule.is_enabled:
        pause = schedule.tenant_pause  # its scheduler applies it, with all times within it
    return follow_spec(schedule, spec, now, keeps_next=keeps_next) or follow_pause(schedule, pause, now)


def born_paused(edit: Edit, tenant: Tenant | None, now: int) -> Edit:
    """A schedule that is made while its tenant is paused: it is paused from its first instant.

    A run that it would have begun with, because its start lies earlier today, is recorded as skipped.
    """
    pause = tenant.paused_at(now) if tenant is not None else None
    if edit.expect_version or pause is None:
        return edit
    skips = [
        Skip(after_at=at - 1, through_at=at, count=1, outcome="skipped", reason=pause.words)
        for at in (job.fire_at for job in edit.jobs)
        if at is not None
    ]
    after = msgspec.structs.replace(edit.after, tenant_pause=pause, run_count=0, last=LastRun())
    after = msgspec.structs.replace(after, next_at=next_slot(after, now))
    return msgspec.structs.replace(edit, after=after, jobs=[], skips=[*edit.skips, *skips])


def _said(tenant: Tenant | None, name: str) -> str | int | None:
    value: str | int | None = getattr(tenant, name) if tenant is not None else None
    return value


def _moved_days(spec: ScheduleSpec, tz: str) -> dict[str, int]:
    """Bounds that were given as days, as the same days in the new zone."""
    moved = {}
    for name in spec.day_bounds:
        at: int | None = getattr(spec, name)
        if at is not None:
            day = find_zone(spec.tz).wall_of(at // SECOND) // DAY
            moved[name] = day_bound(day, tz, is_end=name == "end")
    return moved


def day_bound(day: int, tz: str, *, is_end: bool) -> int:
    """The first second of a local day (counted from 1970), or its last."""
    second = find_zone(tz).instant_of((day + is_end) * DAY)
    return (second - is_end) * SECOND
