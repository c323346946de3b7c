"""schedules: look at them, and pause, resume, enable, disable, remove or run them by hand."""

from __future__ import annotations

import getpass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.cli.groups import Group
from rota.cli.options import check_duration, on_a_store, output_option
from rota.cli.output import Output, say, warn
from rota.cli.schedule_edits import add_schedule, apply_command, edit_schedule, plan_command
from rota.cli.schedule_page import SHOWN_RUNS, ScheduleFacts, ShownSchedule, columns, facts_of, page, read_schedules
from rota.cli.words import instant, instant_from, local, relative
from rota.errors import ScheduleNotFound
from rota.model.micros import datetime_of, span_of

if TYPE_CHECKING:
    from rota.app import App

ids_argument = click.argument("ids", nargs=-1, required=True, metavar="ID...")


class MadeFacts(Struct, kw_only=True):
    """A run that was asked for by hand."""

    schedule_id: str
    job_id: str


@click.group(cls=Group)
def schedules() -> None:
    """Look at schedules; pause, resume or run them."""


@schedules.command("list")
@on_a_store
@output_option
def list_schedules(app: App, out: Output) -> None:
    """All schedules."""
    store = app.open()
    shown = list(read_schedules(store))
    now = datetime_of(store.now())
    out.rows(shown, columns(now), ScheduleFacts, facts_of, empty=f"{store.describe()} has no schedules")


@schedules.command("show")
@click.argument("schedule_id", metavar="ID")
@on_a_store
@output_option
def show_schedule(app: App, schedule_id: str, out: Output) -> None:
    """Everything about one schedule."""
    shown = _read(app, [schedule_id])[0]
    runs = app.schedules.next_runs(schedule_id, SHOWN_RUNS) if shown.state == "on" else []
    now = datetime_of(app.open().now())
    out.page(facts_of(shown), lambda: page(shown, runs, now))


for _command in (add_schedule, edit_schedule, plan_command, apply_command):
    schedules.add_command(_command)


@schedules.command("remove")
@ids_argument
@on_a_store
def remove_schedules(app: App, ids: tuple[str, ...]) -> None:
    """Remove schedules and cancel what they have waiting."""
    for shown in _read(app, ids):
        app.schedules.remove(shown.id)
        say(f"removed {shown.id}")
        if shown.record.origin.kind == "code":
            warn(
                f"{shown.id} is declared in the code of app {shown.record.origin.app!r}, whose next start brings it "
                f"back; take it out of the code, or use `rota schedules disable {shown.id}`"
            )


@schedules.command("pause")
@ids_argument
@click.option("--until", metavar="TIME", help="Go on by itself at this time, such as 2026-10-14T09:00Z.")
@click.option("--for", "span", metavar="DURATION", callback=check_duration, help="Go on by itself after this long.")
@click.option("--reason", default="", help="Why; it is kept with every run that is skipped.")
@click.option("--by", default=None, metavar="NAME", help="Who.  [default: you]")
@on_a_store
@output_option
def pause_schedules(
    app: App, ids: tuple[str, ...], until: str | None, span: str | None, reason: str, by: str | None, out: Output
) -> None:
    """Stop firing until resumed; what waits is cancelled."""
    end = _end_of_pause(datetime_of(app.open().now()), until, span)
    for shown in _read(app, ids):
        app.schedules.pause(shown.id, until=end, reason=reason, by=_who() if by is None else by)
        say(
            f"paused {shown.id}"
            + (f" until {instant(end)}" if end else f"; `rota schedules resume {shown.id}` ends it")
        )
    _write_changed(app, ids, out)


@schedules.command("resume")
@ids_argument
@on_a_store
@output_option
def resume_schedules(app: App, ids: tuple[str, ...], out: Output) -> None:
    """Go on firing; what was missed is skipped."""
    for shown in _read(app, ids):
        view = app.schedules.resume(shown.id)
        say(f"resumed {shown.id}{_then(app, view.next_run)}" if shown.record.pause else f"was not paused: {shown.id}")
    _write_changed(app, ids, out)


@schedules.command("enable")
@ids_argument
@on_a_store
@output_option
def enable_schedules(app: App, ids: tuple[str, ...], out: Output) -> None:
    """Switch schedules on; this outlasts deployments."""
    for shown in _read(app, ids):
        view = app.schedules.enable(shown.id)
        is_new = not shown.record.is_enabled
        say(f"enabled {shown.id}{_then(app, view.next_run)}" if is_new else f"was enabled already: {shown.id}")
    _write_changed(app, ids, out)


@schedules.command("disable")
@ids_argument
@on_a_store
@output_option
def disable_schedules(app: App, ids: tuple[str, ...], out: Output) -> None:
    """Switch schedules off; this outlasts deployments."""
    for shown in _read(app, ids):
        app.schedules.disable(shown.id)
        say(f"disabled {shown.id}" if shown.record.is_enabled else f"was disabled already: {shown.id}")
    _write_changed(app, ids, out)


@schedules.command("run-now")
@click.argument("schedule_id", metavar="ID")
@on_a_store
@output_option
def run_schedule_now(app: App, schedule_id: str, out: Output) -> None:
    """Make one job at once; prints its id."""
    job = app.schedules.run_now(schedule_id, by=_who())
    say(f"enqueued a run of {schedule_id}")
    out.page(MadeFacts(schedule_id=schedule_id, job_id=job.id), lambda: [job.id])


def _read(app: App, ids: tuple[str, ...] | list[str]) -> list[ShownSchedule]:
    """The schedules of these ids, all of them or an error: nothing is half done."""
    found = {record.id: ShownSchedule(record) for record in app.open().get_schedules(list(ids))}
    for schedule_id in ids:
        if schedule_id not in found:
            others = "; nothing was done about the others" if len(ids) > 1 else ""
            raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}{others}")
    return list(found.values())


def _write_changed(app: App, ids: tuple[str, ...], out: Output) -> None:
    """The schedules as they are now, for machines; people were told what was done."""
    if out.form != "table":
        out.rows(_read(app, ids), [], ScheduleFacts, facts_of, empty="")


def _end_of_pause(now: datetime, until: str | None, span: str | None) -> datetime | None:
    if until and span:
        raise click.UsageError("--until and --for both say when the pause ends; give one of them")
    if span:
        return now + timedelta(microseconds=span_of(span))
    end = instant_from(until) if until else None
    if end is not None and end <= now:
        raise click.UsageError(f"--until {until} lies in the past")
    return end


def _then(app: App, run: datetime | None) -> str:
    if run is None:
        return ""
    return f"; its next run is at {local(run)}, {relative(run, datetime_of(app.open().now()))}"


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""  # a user id without a name
