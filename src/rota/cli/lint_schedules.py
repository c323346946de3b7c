"""Defines the rules of lint about schedules: what would surprise their author, in code or in rota.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rota.cli.checks import Check
from rota.cli.words import first_line
from rota.clock import utc_now
from rota.config.words import meant
from rota.errors import RotaError
from rota.model.micros import SECOND, datetime_of, micros_of, span_of
from rota.model.schedules.schedule import bound_trigger
from rota.operations.specs import bound_instant
from rota.triggers.duration import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime

    from rota.config.declared import Declarations, FileSchedule
    from rota.model.schedules.schedule import ScheduleSpec
    from rota.triggers import Trigger

HOUR = span_of("1h")
CLOCK_CHANGES = {"gap", "repeat"}
ABOUT = "schedules"
TIMES = frozenset({"tz", "tenant", "start", "end", "jitter"})  # what decides when it runs, besides its trigger


class Timing(Struct, frozen=True, kw_only=True):
    """The fields that decide when a schedule runs. Bounds are instants in microseconds."""

    name: str  # as findings call it
    trigger: str
    tz: str
    start: int | None = None
    end: int | None = None
    jitter: int = 0
    may_never_run: bool = False  # a collection may be synced by hand alone


def timing_of(name: str, spec: ScheduleSpec) -> Timing:
    return Timing(
        name=name,
        trigger=spec.trigger,
        tz=spec.tz,
        start=spec.start,
        end=spec.end,
        jitter=spec.jitter,
        may_never_run=spec.sync is not None,
    )


def file_timings(declared: Declarations, tz: str) -> Iterator[Timing]:
    """The timings of a file's schedules, also if their tasks are unknown."""
    zones = {tenant.name: str(tenant.options["tz"]) for tenant in declared.tenants}
    for one in (*declared.schedules, *declared.mistaken.schedules):
        if not one.trigger or one.misread & TIMES:
            continue  # when it runs is not known
        own = one.options.get("tz") or zones.get(one.options.get("tenant", ""), tz)
        jitter = one.options.get("jitter")
        yield Timing(
            name=_called(one),
            trigger=one.trigger,
            tz=str(own),
            start=_instant("start", one.options.get("start"), str(own)),
            end=_instant("end", one.options.get("end"), str(own)),
            jitter=int(jitter.total_seconds()) * SECOND if jitter else 0,
        )


def _called(one: FileSchedule) -> str:
    return f"{one.place}: {one.id}"


def _instant(name: str, bound: date | None, tz: str) -> int | None:
    return None if bound is None else bound_instant(name, bound, tz)


def schedule_findings(timing: Timing) -> Iterator[Check]:
    """No run ahead, jitter that mixes runs up, clock changes, dates that rarely exist."""
    name, now = timing.name, utc_now()
    try:
        trigger = bound_trigger(timing.trigger, timing.tz, timing.start or micros_of(now) // SECOND * SECOND)
    except RotaError as err:
        yield Check(ABOUT, "problem", f"{name}: {err}")
        return
    runs = _runs(trigger, timing, now)
    if not runs and not timing.may_never_run:
        yield Check(ABOUT, "warning", f"{name} has no run ahead ({trigger.explain()})", "take it out, or mend it")
    gap = micros_of(runs[1]) - micros_of(runs[0]) if len(runs) > 1 else None
    if gap is not None and timing.jitter >= gap:
        jitter, interval = text_of(timing.jitter // SECOND), text_of(gap // SECOND)
        todo = "choose less jitter, so that runs keep their order"
        yield Check(ABOUT, "warning", f"{name} has a jitter of {jitter} and runs every {interval}", todo)
    for caveat in trigger.warnings(after=now):
        if gap is None or gap >= HOUR or caveat.kind not in CLOCK_CHANGES:  # what runs all the time loses little
            yield Check(ABOUT, "warning", f"{name}: {first_line(caveat.message)}")


def tenant_findings(declared: Declarations, *, is_whole: bool) -> Iterator[Check]:
    """Tenants that schedules name and the file does not: the store may have them, which nobody looked at.

    Of a file that is not whole, a tenant may be missing because of another mistake, which was reported already.
    """
    for one in (*declared.schedules, *declared.mistaken.schedules):
        tenant = one.options.get("tenant")
        if tenant is not None:
            found = _unknown_tenant(f"{one.at('tenant')}: {one.id}", tenant, declared)
            yield from (check for check in found if is_whole or check.verdict == "problem")


def code_tenant_findings(schedule_id: str, spec: ScheduleSpec, declared: Declarations) -> Iterator[Check]:
    """The same of a schedule in code, where the file declares tenants at all: else all are made at run time."""
    if spec.tenant and declared.tenants:
        yield from _unknown_tenant(schedule_id, spec.tenant, declared)


def _unknown_tenant(name: str, tenant: str, declared: Declarations) -> Iterator[Check]:
    known = [*(one.name for one in declared.tenants), *declared.mistaken.tenants]
    if tenant in known:
        return
    finding = f"{name} names the tenant {tenant}, which the file does not declare"
    close = meant(tenant, known)
    if close is not None and _letters(close) != _letters(tenant):  # shop1 and shop2 are two tenants
        todo = f"did you mean {close}? If there is such a tenant as well, add it to tenants:"
        yield Check("tenants", "problem", finding, todo)
    else:
        yield Check("tenants", "warning", finding, "add it to tenants:, unless it is made at run time")


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _runs(trigger: Trigger, timing: Timing, now: datetime) -> list[datetime]:
    start = datetime_of(timing.start) if timing.start is not None else now
    runs = trigger.next_runs(2, after=max(now, start))
    return [run for run in runs if timing.end is None or micros_of(run) <= timing.end]
