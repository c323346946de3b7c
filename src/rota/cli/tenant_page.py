"""Shows a tenant: as a row of a list, and as a page."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rota.cli.change_list import change_lines
from rota.cli.columns import Column
from rota.cli.output import aligned, coloured, heading, table_lines
from rota.cli.schedule_page import ShownSchedule, next_words, pause_words, read_schedules
from rota.cli.words import beside, count, local, printable
from rota.model.micros import datetime_of
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from rota.app import App
    from rota.inspector.changes import Change
    from rota.inspector.tenant_view import TenantView

SHOWN_SCHEDULES = 20
SHOWN_CHANGES = 3
COUNTED = 1_000  # schedules beyond those that are shown; nobody waits for a million to be counted
ZONE_CHANGES = {
    "recompute": "a new zone holds at once",
    "keep_next": "a new zone holds after the run that is announced",
}


class Owned(NamedTuple):
    """The schedules of a tenant: the first of them, and how many more there are."""

    shown: list[ShownSchedule]
    more: int


def read_owned(app: App, tenant: str) -> Owned:
    found = read_schedules(app.open(), tenant)
    shown = list(islice(found, SHOWN_SCHEDULES))
    return Owned(shown, sum(1 for _ in islice(found, COUNTED)))


def tenant_columns(now: datetime) -> list[Column[TenantView]]:
    return [
        Column("tenant", lambda tenant: tenant.name),
        Column("zone", lambda tenant: tenant.tz),
        Column("local time", lambda tenant: _clock(tenant, now), dropped=3),
        Column("queue", lambda tenant: tenant.queue or "-", dropped=2),
        Column("priority", _number, is_number=True, dropped=2),
        Column("state", lambda tenant: _state(tenant, now), "wrap"),
        Column("about", lambda tenant: tenant.description or "-", "wrap", dropped=1),
    ]


def tenant_page(tenant: TenantView, owned: Owned, changes: Sequence[Change], now: datetime) -> Iterator[str]:
    """Everything about one tenant."""
    yield f"{heading(tenant.name)}  {coloured('paused' if tenant.is_paused_at(now) else 'open')}"
    yield ""
    yield from aligned(list(_rows(tenant, now)), indent="  ")
    yield ""
    yield heading("schedules")
    yield from _owned_lines(tenant, owned, now)
    yield from change_lines(changes, now)


def _rows(tenant: TenantView, now: datetime) -> Iterator[list[str]]:
    if tenant.problem:
        yield ["problem", printable(tenant.problem)]
    if tenant.description:
        yield ["about", printable(tenant.description)]
    if tenant.pause is not None and tenant.is_paused_at(now):
        own = msgspec.structs.replace(tenant.pause, tenant="")  # whose it is needs no words here
        yield ["paused", f"since {beside(datetime_of(own.at), now)}, {pause_words(own)}"]
    yield ["zone", f"{tenant.tz}, where it is {_clock(tenant, now)}"]
    yield ["zone changes", f"{tenant.on_zone_change}: {ZONE_CHANGES[tenant.on_zone_change]}"]
    yield ["queue", tenant.queue or "its schedules and their tasks say it"]
    yield ["priority", "its schedules and their tasks say it" if tenant.priority is None else str(tenant.priority)]
    yield ["created", beside(tenant.created_at, now)]
    if tenant.updated_at != tenant.created_at:
        yield ["changed", beside(tenant.updated_at, now)]


def _owned_lines(tenant: TenantView, owned: Owned, now: datetime) -> Iterator[str]:
    if not owned.shown:
        yield f"  none; `rota schedules add ID TASK --tenant {tenant.name} …` makes one"
        return
    columns: list[Column[ShownSchedule]] = [
        Column("schedule", lambda one: one.id),
        Column("next run", lambda one: _next_or_state(one, now), "wrap at commas"),
        Column("runs", lambda one: one.sentence, "wrap"),
    ]
    yield from table_lines(owned.shown, columns, indent="  ")
    if owned.more:
        many = f"more than {COUNTED:,}" if owned.more == COUNTED else f"{owned.more:,}"
        yield f"  and {many} more: `rota schedules list --tenant {tenant.name}`"


def _next_or_state(shown: ShownSchedule, now: datetime) -> str:
    return next_words(shown, now) if shown.next_run is not None else shown.state


def _state(tenant: TenantView, now: datetime) -> str:
    if tenant.problem:
        return tenant.problem
    if tenant.pause is None or not tenant.is_paused_at(now):
        return "open"
    return pause_words(msgspec.structs.replace(tenant.pause, tenant=""))


def _clock(tenant: TenantView, now: datetime) -> str:
    """The time in the tenant's zone."""
    if tenant.problem:
        return "?"
    there = find_zone(tenant.tz).datetime_of(int(now.timestamp()) // 60 * 60)
    return f"{there:%a} {local(there)}"


def _number(tenant: TenantView) -> str:
    return "-" if tenant.priority is None else str(tenant.priority)


def described(tenant: TenantView, owned: Owned) -> str:
    """acme: Asia/Kolkata, 3 schedules"""
    number = len(owned.shown) + owned.more
    many = f"more than {COUNTED:,} schedules" if owned.more == COUNTED else count(number, "schedule")
    return f"{tenant.name}: {tenant.tz}, {many}"
