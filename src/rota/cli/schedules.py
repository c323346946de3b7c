"""Runs `schedules`: shows, pauses, resumes, enables, disables, removes and starts them by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.app import internals
from rota.cli.change_list import schedule_changes
from rota.cli.groups import Group
from rota.cli.occurrences import list_occurrences
from rota.cli.options import by_option, on_a_store, output_option
from rota.cli.output import Output, say, warn
from rota.cli.pausing import end_of_pause, pause_options
from rota.cli.schedule_edits import add_schedule, edit_schedule
from rota.cli.schedule_page import (
    SHOWN_CHANGES,
    SHOWN_RUNS,
    ShownSchedule,
    columns,
    page,
    read_schedules,
)
from rota.cli.schedule_plan import apply_command, plan_command
from rota.cli.words import instant, local, relative
from rota.errors import Refused, ScheduleNotFound
from rota.inspector.facts.job import enqueued_facts
from rota.inspector.facts.schedule import ScheduleFacts, schedule_facts
from rota.model.micros import datetime_of, micros_of
from rota.model.schedules.edit import check_removable
from rota.model.schedules.origin import describe_origin
from rota.model.schedules.schedule import Origin

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from rota.app import App
    from rota.model.schedules.schedule import Schedule

SHOWN_SCHEDULES = 50  # rows of a table where nothing is said

ids_argument = click.argument("ids", nargs=-1, required=True, metavar="ID...")


@click.group(cls=Group)
def schedules() -> None:
    """List and show schedules; pause, resume or run them."""


@schedules.command("list")
@click.option("--tenant", metavar="NAME", help="Only those of this tenant.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Show this many at most.  [default: 50 in a table]",
)
@click.option("--all", "is_all", is_flag=True, help="Show all of them.")
@on_a_store
@output_option
def list_schedules(app: App, tenant: str | None, limit: int | None, out: Output, *, is_all: bool) -> None:
    """List schedules by id, all or those of a tenant."""
    if is_all and limit is not None:
        raise click.UsageError("--all and --limit contradict each other; give one")
    most = limit or (None if is_all or out.form != "table" else SHOWN_SCHEDULES)
    store = app.open()
    owner = app.tenants.get(tenant).name if tenant is not None else None
    shown = list(read_schedules(store, owner))
    left_out = 0 if most is None else max(0, len(shown) - most)
    shown = shown[:most]
    has_tenants = owner is None and any(one.record.spec.tenant for one in shown)
    empty = f"tenant {owner} has no schedules" if owner else f"{store.describe()} has no schedules"
    out.rows(shown, columns(datetime_of(store.now()), has_tenants=has_tenants), ScheduleFacts, _facts(app), empty=empty)
    if left_out:
        say(f"… and {left_out:,} more: --all shows all of them, --limit N so many, --tenant those of one tenant")


@schedules.command("show")
@click.argument("schedule_id", metavar="ID")
@on_a_store
@output_option
def show_schedule(app: App, schedule_id: str, out: Output) -> None:
    """Show everything about one schedule."""
    shown = _read(app, [schedule_id])[0]
    runs = app.schedules.next_runs(schedule_id, SHOWN_RUNS) if shown.state == "on" else []
    changes = app.schedules.changes(schedule_id, limit=SHOWN_CHANGES).items
    now = datetime_of(app.open().now())
    facts = schedule_facts(shown.record, internals(app).redaction, micros_of(now))
    out.page(facts, lambda: page(shown, runs, changes, now, internals(app).redaction))


for _command in (schedule_changes, list_occurrences, add_schedule, edit_schedule, plan_command, apply_command):
    schedules.add_command(_command)


@schedules.command("remove")
@ids_argument
@click.option(
    "--force",
    is_flag=True,
    help="Also remove what code or a file declares; the next deploy that declares it adds it again.",
)
@by_option
@on_a_store
def remove_schedules(app: App, ids: tuple[str, ...], by: str, *, force: bool) -> None:
    """Remove schedules and cancel what they have waiting."""
    found = _read(app, ids)
    if not force:
        for shown in found:
            _check_removable(shown.record, len(found))
    for shown in found:
        app.schedules.remove(shown.id, by=by, force=force)
        say(f"removed {shown.id}")
        where = {"code": "the code", "file": "the rota.yaml"}.get(shown.record.origin.kind)
        if where is not None and not shown.record.origin.is_retired:
            warn(
                f"{shown.id} is declared in {where} of app {shown.record.origin.app!r}, whose next start brings it "
                f"back; take it out there, or use `rota schedules disable {shown.id}`"
            )


@schedules.command("pause")
@ids_argument
@pause_options
@by_option
@on_a_store
@output_option
def pause_schedules(
    app: App, ids: tuple[str, ...], until: str | None, span: str | None, reason: str, by: str, out: Output
) -> None:
    """Pause schedules until they are resumed; their waiting jobs are cancelled."""
    end = end_of_pause(datetime_of(app.open().now()), until, span)
    for shown in _read(app, ids):
        app.schedules.pause(shown.id, until=end, reason=reason, by=by)
        say(
            f"paused {shown.id}"
            + (f" until {instant(end)}" if end else f"; `rota schedules resume {shown.id}` ends it")
        )
    _write_changed(app, ids, out)


@schedules.command("resume")
@ids_argument
@by_option
@on_a_store
@output_option
def resume_schedules(app: App, ids: tuple[str, ...], by: str, out: Output) -> None:
    """Resume firing. Times within the pause stay skipped; `catchup` decides about times that were missed before it."""
    for shown in _read(app, ids):
        view = app.schedules.resume(shown.id, by=by)
        say(f"resumed {shown.id}{_then(app, view.next_run)}" if shown.record.pause else f"was not paused: {shown.id}")
        if shown.record.tenant_pause is not None:
            tenant = shown.record.spec.tenant
            warn(f"{shown.id} stays paused with its tenant; `rota tenants resume {tenant}` ends that")
    _write_changed(app, ids, out)


@schedules.command("enable")
@ids_argument
@by_option
@on_a_store
@output_option
def enable_schedules(app: App, ids: tuple[str, ...], by: str, out: Output) -> None:
    """Enable schedules; this survives deploys."""
    for shown in _read(app, ids):
        view = app.schedules.enable(shown.id, by=by)
        is_new = not shown.record.is_enabled
        say(f"enabled {shown.id}{_then(app, view.next_run)}" if is_new else f"was enabled already: {shown.id}")
    _write_changed(app, ids, out)


@schedules.command("disable")
@ids_argument
@by_option
@on_a_store
@output_option
def disable_schedules(app: App, ids: tuple[str, ...], by: str, out: Output) -> None:
    """Disable schedules; this survives deploys."""
    for shown in _read(app, ids):
        app.schedules.disable(shown.id, by=by)
        say(f"disabled {shown.id}" if shown.record.is_enabled else f"was disabled already: {shown.id}")
    _write_changed(app, ids, out)


@schedules.command("run-now")
@click.argument("schedule_id", metavar="ID")
@by_option
@on_a_store
@output_option
def run_schedule_now(app: App, schedule_id: str, by: str, out: Output) -> None:
    """Make one job at once; prints its id. If another job holds its key, none is made: prints the id of that job."""
    shown = _read(app, [schedule_id])[0]
    job = app.schedules.run_now(schedule_id, by=by)
    if job.existed:
        holder = f"holds the unique key {job.key!r}" if job.key else "syncs the same collection"
        say(f"job {job.id} {holder}; nothing was made, and `rota jobs show {job.id}` shows that job")
    else:
        say(f"enqueued a run of {schedule_id}{_by_itself(shown)}")
    out.page(enqueued_facts(job.record, internals(app).redaction, existed=job.existed), lambda: [job.id])


def _by_itself(shown: ShownSchedule) -> str:
    """What is unusual about a schedule that is run by hand: that it does not run by its times."""
    match shown.state:
        case "retired":
            origin = describe_origin(shown.record.origin)
            return f"; the schedule is retired, because {origin} no longer has it: it makes no runs by itself"
        case "finished":
            return "; the schedule has no run ahead: it makes no more runs by itself"
        case "disabled":
            return f"; the schedule stays disabled: `rota schedules enable {shown.id}` has it run by its times"
        case "paused":
            return "; the schedule stays paused"
        case _:
            return ""


def _read(app: App, ids: tuple[str, ...] | list[str]) -> list[ShownSchedule]:
    """The schedules of these ids, all of them or an error: nothing is half done."""
    store = app.open()
    now = store.now()
    found = {record.id: ShownSchedule(record, now) for record in store.get_schedules(list(ids))}
    for schedule_id in ids:
        if schedule_id not in found:
            others = "; nothing was done about the others" if len(ids) > 1 else ""
            raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}{others}")
    return list(found.values())


def _facts(app: App) -> Callable[[ShownSchedule], ScheduleFacts]:
    now = app.open().now()
    return lambda shown: schedule_facts(shown.record, internals(app).redaction, now)


def _check_removable(schedule: Schedule, count: int) -> None:
    """Refuse before the first removal: nothing is half done."""
    try:
        check_removable(schedule, Origin())
    except Refused as err:
        raise Refused(f"{err}; no schedule was removed" if count > 1 else str(err)) from err


def _write_changed(app: App, ids: tuple[str, ...], out: Output) -> None:
    """The schedules as they are now, for machines; people have read what was done."""
    if out.form != "table":
        out.rows(_read(app, ids), [], ScheduleFacts, _facts(app), empty="")


def _then(app: App, run: datetime | None) -> str:
    if run is None:
        return ""
    return f"; its next run is at {local(run)}, {relative(run, datetime_of(app.open().now()))}"
