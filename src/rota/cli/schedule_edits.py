"""schedules add, edit, plan and apply: schedules that are made by hand, and what a deploy would change."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from rota.cli.enqueue import read_arguments
from rota.cli.options import by_option, on_a_store, output_option
from rota.cli.output import Output, heading, say, write
from rota.cli.schedule_options import given_of, reworded, rule_options, trigger_of
from rota.cli.words import count, local, relative
from rota.errors import ScheduleNotFound
from rota.model.micros import SECOND, datetime_of
from rota.model.names import check_schedule_id
from rota.model.schedule import Origin
from rota.specs import make_spec
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.app import App
    from rota.model.planning import Planned
    from rota.model.schedule import Schedule

MARKS = {
    "add": ("+", "green"),
    "restore": ("+", "green"),
    "retire": ("-", "red"),
    "re-time": ("~", "yellow"),
    "change": ("~", "yellow"),
    "refused": ("!", "red"),
    "newer": ("!", "yellow"),
}


class PlannedFacts(Struct, kw_only=True):
    """What JSON and CSV say about one planned change; times are UTC."""

    id: str
    kind: str
    says: list[str]
    runs_before: list[datetime]
    runs_after: list[datetime]


@click.command("add")
@click.argument("schedule_id", metavar="ID")
@click.argument("task_name", metavar="TASK")
@click.argument("words", nargs=-1, metavar="[ARG | NAME=VALUE]...")
@rule_options
@by_option
@on_a_store
def add_schedule(app: App, schedule_id: str, task_name: str, words: tuple[str, ...], by: str, **options: Any) -> None:
    """Make a schedule that has a task run again and again."""
    trigger = trigger_of(options)
    if trigger is None:
        raise click.UsageError("when is it to run? Give one of --cron, --every, --calendar and --once")
    if app.open().get_schedules([check_schedule_id(schedule_id)]):
        raise click.UsageError(f"schedule {schedule_id!r} exists; `rota schedules edit {schedule_id}` changes it")
    task = app.registry.get(task_name)
    arguments = read_arguments(task, words)
    request = task.job(*arguments.args, **arguments.kwargs)
    spec = make_spec(trigger, request, default_tz=app.tz, **given_of(options))
    app.schedules.register([(schedule_id, spec)], Origin(), by=by, expect_version=0)
    _tell(app, "added", schedule_id)


@click.command("edit")
@click.argument("schedule_id", metavar="ID")
@rule_options
@by_option
@on_a_store
def edit_schedule(app: App, schedule_id: str, by: str, **options: Any) -> None:
    """Change what is given; all else stays. New times hold from now on.

    An empty text takes something back: --lookahead '' makes jobs when they are due again, --tenant '' leaves the
    tenant, and --tz '' lets the tenant say the zone.
    """
    found = app.open().get_schedules([schedule_id])
    if not found:
        raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}")
    trigger = trigger_of(options)
    changed = reworded(found[0].spec, trigger, given_of(options))
    if changed == found[0].spec:
        raise click.UsageError("nothing is to be changed; say what, as in --cron '0 10 * * *' or --queue mail")
    app.schedules.register([(schedule_id, changed)], Origin(), by=by, expect_version=found[0].version)
    _tell(app, "changed", schedule_id)


@click.command("plan")
@click.option("--check", is_flag=True, help="Exit with 1 where something would change.")
@on_a_store
@output_option
def plan_command(app: App, out: Output, *, check: bool) -> None:
    """What the next start of the app would change about its schedules, and what it no longer has."""
    planned = _plan(app)
    _write_plan(app, planned, out)
    if check and planned:
        click.get_current_context().exit(1)


@click.command("apply")
@by_option
@on_a_store
@output_option
def apply_command(app: App, by: str, out: Output) -> None:
    """Bring the store to what the app declares; what it no longer declares is retired."""
    planned = _plan(app)
    _write_plan(app, planned, out)
    done = app.schedules.apply(planned, by=by)
    if planned:
        say(f"applied {count(done, 'change')}")


def _plan(app: App) -> Sequence[Planned]:
    if not app.declared and not len(app.registry):
        raise click.UsageError("the app whose schedules are planned is not named: add --app jobs.py, or set ROTA_APP")
    return app.schedules.plan(app.declared, Origin("code", app.name, app.version))


def _tell(app: App, what: str, schedule_id: str) -> None:
    view = app.schedules.get(schedule_id)
    now = datetime_of(app.open().now())
    ahead = f"; its next run is at {local(view.next_run)}, {relative(view.next_run, now)}" if view.next_run else ""
    paused = f"; it is {view.pause_reason}" if view.pause_reason else ""
    say(f"{what} {schedule_id}: {view.explain()}{ahead}{paused}")


def _write_plan(app: App, planned: Sequence[Planned], out: Output) -> None:
    now = app.open().now()
    if out.form == "table":
        for line in _page(planned, now):
            write(line)
    else:
        out.rows(planned, [], PlannedFacts, lambda one: _facts(one, now), empty="")


def _page(planned: Sequence[Planned], now: int) -> Iterator[str]:
    if not planned:
        yield "nothing would change"
    for one in planned:
        mark, colour = MARKS[one.kind]
        yield f"{click.style(mark, fg=colour)} {heading(one.id)}  {one.kind}"
        yield from (f"    {line}" for line in one.says)
        if one.kind in {"retire", "re-time"}:
            yield f"    next runs were:  {_runs(one, one.before, now)}"
        if one.kind in {"add", "restore", "re-time"}:
            yield f"    next runs:       {_runs(one, one.after, now)}"


def _runs(one: Planned, schedule: Schedule | None, now: int) -> str:
    runs = one.runs(schedule, now)
    if schedule is None or not runs:
        return "none"
    return ", ".join(local(find_zone(schedule.spec.tz).datetime_of(run // SECOND)) for run in runs)


def _facts(one: Planned, now: int) -> PlannedFacts:
    return PlannedFacts(
        id=one.id,
        kind=one.kind,
        says=one.says,
        runs_before=[datetime_of(run) for run in one.runs(one.before, now)],
        runs_after=[datetime_of(run) for run in one.runs(one.after, now)],
    )
