"""Runs `tenants`: customers or projects with a timezone and defaults. Pauses or changes all their schedules at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click

from rota.cli.change_list import limit_option, read_changes, write_changes
from rota.cli.groups import Group
from rota.cli.options import by_option, on_a_store, output_option
from rota.cli.output import Output, say
from rota.cli.pausing import end_of_pause, pause_options
from rota.cli.schedule_options import given_of, read_priority
from rota.cli.tenant_page import (
    SHOWN_CHANGES,
    described,
    read_owned,
    tenant_columns,
    tenant_page,
)
from rota.cli.words import instant
from rota.errors import TenantNotFound
from rota.inspector.facts.tenant import TenantFacts, tenant_facts
from rota.model.micros import datetime_of, micros_of
from rota.model.names import check_name
from rota.model.tenant import OnZoneChange
from rota.store.contract import LARGEST_PAGE
from rota.store.shared.paging import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.inspector.tenant_view import TenantView

name_argument = click.argument("name", metavar="NAME")


@click.group(cls=Group)
def tenants() -> None:
    """List and show tenants; make, change, pause or remove them."""


@tenants.command("list")
@on_a_store
@output_option
def list_tenants(app: App, out: Output) -> None:
    """List all tenants."""
    store = app.open()
    now = datetime_of(store.now())
    empty = f"{store.describe()} has no tenants; `rota tenants put NAME --tz ZONE` makes one"
    facts = partial(tenant_facts, now=micros_of(now))
    out.rows(list(_all(app)), tenant_columns(now), TenantFacts, facts, empty=empty)


@tenants.command("show")
@name_argument
@on_a_store
@output_option
def show_tenant(app: App, name: str, out: Output) -> None:
    """Show everything about one tenant: its schedules, its pause, its last changes."""
    tenant = _read(app, name)
    owned = read_owned(app, name)
    changes = app.tenants.changes(name, limit=SHOWN_CHANGES).items
    now = datetime_of(app.open().now())
    out.page(tenant_facts(tenant, micros_of(now)), lambda: tenant_page(tenant, owned, changes, now))


@tenants.command("changes")
@name_argument
@limit_option
@on_a_store
@output_option
def tenant_changes(app: App, name: str, limit: int, out: Output) -> None:
    """List who changed a tenant, when, and what, also after its removal."""
    found = read_changes(lambda **page: app.tenants.changes(name, **page), limit)
    if not found:
        _read(app, name)
    write_changes(app, found, out, limit=limit, empty=f"no change of tenant {name} is kept")


@tenants.command("put")
@name_argument
@click.option("--tz", metavar="ZONE", help="An IANA name such as Asia/Kolkata.")
@click.option("--queue", metavar="NAME", help="For its schedules that name none.")
@click.option(
    "--priority",
    metavar="N",
    callback=read_priority,
    help="For its schedules that name none: -100 to 100, or low, normal, high.",
)
@click.option(
    "--on-zone-change", type=click.Choice(get_args(OnZoneChange)), help="What a new zone does to the next run."
)
@click.option("--description", metavar="TEXT", help="A text for people.")
@by_option
@on_a_store
@output_option
def put_tenant(app: App, name: str, by: str, out: Output, **options: Any) -> None:
    """Make a tenant, or change what is given; its schedules follow at once.

    An empty text takes a default back: with --queue '', its schedules and their tasks name the queue again.
    """
    found = _find(app, check_name("tenant", name))
    said = _said(found, given_of(options))
    if "tz" not in said:
        raise click.UsageError(f"tenant {name!r} does not exist yet, and a new one needs --tz, as in --tz Asia/Kolkata")
    put = app.tenants.put(name, by=by, expect_version=found.version if found else 0, **said)
    if found is not None and found.version == put.version:
        say(f"nothing was to be changed about {name}")
    else:
        say(f"changed {described(put, read_owned(app, name))}" if found else f"added {name}: {put.tz}")
    _write(app, name, out)


@tenants.command("pause")
@name_argument
@pause_options
@by_option
@on_a_store
@output_option
def pause_tenant(app: App, name: str, until: str | None, span: str | None, reason: str, by: str, out: Output) -> None:
    """Pause all its schedules until resumed; their waiting jobs are cancelled."""
    _read(app, name)
    end = end_of_pause(datetime_of(app.open().now()), until, span)
    tenant = app.tenants.pause(name, until=end, reason=reason, by=by)
    ending = f"until {instant(end)}" if end else f"`rota tenants resume {name}` ends it"
    say(f"paused {described(tenant, read_owned(app, name))}; {ending}")
    _write(app, name, out)


@tenants.command("resume")
@name_argument
@by_option
@on_a_store
@output_option
def resume_tenant(app: App, name: str, by: str, out: Output) -> None:
    """Resume its schedules, except those that are paused themselves; times within the pause stay skipped."""
    was_paused = _read(app, name).pause is not None
    tenant = app.tenants.resume(name, by=by)
    owned = read_owned(app, name)
    say(f"resumed {described(tenant, owned)}" if was_paused else f"was not paused: {name}")
    still = [one.id for one in owned.shown if one.record.pause is not None]
    if was_paused and still:
        say(f"paused by themselves, and still so: {', '.join(still)}; `rota schedules resume ID` ends that")
    _write(app, name, out)


@tenants.command("remove")
@name_argument
@by_option
@on_a_store
def remove_tenant(app: App, name: str, by: str) -> None:
    """Remove a tenant that has no schedules; the record of its changes stays."""
    _read(app, name)
    app.tenants.remove(name, by=by)
    say(f"removed {name}")


def _said(found: TenantView | None, given: dict[str, Any]) -> dict[str, Any]:
    """The values of the tenant after the command: those that are given, else the present ones. An empty text removes a
    value."""
    kept: dict[str, Any] = {}
    if found is not None:
        kept = {name: getattr(found, name) for name in ("tz", "queue", "priority", "on_zone_change", "description")}
    if given.get("tz") == "":
        raise click.UsageError("--tz '' names no zone; a tenant has one, as in --tz Asia/Kolkata")
    taken_back = {name: None for name in ("queue", "priority") if given.get(name) == ""}
    return {**kept, **given, **taken_back}


def _find(app: App, name: str) -> TenantView | None:
    try:
        return app.tenants.get(name)
    except TenantNotFound:
        return None


def _read(app: App, name: str) -> TenantView:
    try:
        return app.tenants.get(name)
    except TenantNotFound as err:
        if "did you mean" in str(err):
            raise
        put = f"no tenant has the name {name!r}; `rota tenants put {name} --tz ZONE` makes it"
        raise TenantNotFound(put) from err


def _all(app: App) -> Iterator[TenantView]:
    """By name, read a page at a time."""
    return walk(app.tenants.list, limit=LARGEST_PAGE)


def _write(app: App, name: str, out: Output) -> None:
    """The tenant as it is now, for machines; people have read what was done."""
    if out.form != "table":
        now = datetime_of(app.open().now())
        out.rows([app.tenants.get(name)], [], TenantFacts, lambda one: tenant_facts(one, micros_of(now)), empty="")
