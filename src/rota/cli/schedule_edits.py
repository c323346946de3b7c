"""Runs `schedules add` and `edit`, which make schedules by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.app import internals
from rota.cli.enqueue import check_types, read_arguments
from rota.cli.options import by_option, on_a_store, on_a_store_to_be
from rota.cli.output import say, warn
from rota.cli.schedule_options import given_of, reworded, rule_options, trigger_of
from rota.cli.words import local, relative
from rota.errors import ScheduleNotFound
from rota.inspector.schedule_warnings import schedule_warnings
from rota.model.micros import datetime_of
from rota.model.names import check_schedule_id
from rota.model.schedules.never import why_never
from rota.model.schedules.origin import check_origin
from rota.model.schedules.schedule import Origin
from rota.operations.specs import make_spec

if TYPE_CHECKING:
    from rota.app import App


@click.command("add")
@click.argument("schedule_id", metavar="ID")
@click.argument("task_name", metavar="TASK")
@click.argument("words", nargs=-1, metavar="[ARG | NAME=VALUE]...")
@rule_options
@by_option
@on_a_store_to_be
def add_schedule(app: App, schedule_id: str, task_name: str, words: tuple[str, ...], by: str, **options: Any) -> None:
    """Create a schedule."""
    trigger = trigger_of(options, lambda: _zone(app, options, app.settings.tz))
    if trigger is None:
        raise click.UsageError("when is it to run? Give one of --cron, --every, --calendar and --once")
    for existing in app.open().get_schedules([check_schedule_id(schedule_id)]):
        check_origin(existing, Origin(), "change", "edit it there, or choose another id")
        raise click.UsageError(f"schedule {schedule_id!r} exists; `rota schedules edit {schedule_id}` changes it")
    task = internals(app).registry.get(task_name)
    arguments = read_arguments(task, words)
    request = task.job(*arguments.args, **arguments.kwargs)
    check_types(app, task, request)
    spec = make_spec(trigger, request, default_tz=app.settings.tz, **given_of(options))
    app.schedules.register([(schedule_id, spec)], Origin(), by=by, expect_version=0)
    _tell(app, "added", schedule_id)


@click.command("edit")
@click.argument("schedule_id", metavar="ID")
@rule_options
@by_option
@on_a_store
def edit_schedule(app: App, schedule_id: str, by: str, **options: Any) -> None:
    """Change the given options; the others stay. New times hold from now on.

    An empty text takes something back: --lookahead '' makes jobs when they are due again, --tenant '' leaves the
    tenant, and --tz '' lets the tenant say the zone.
    """
    found = app.open().get_schedules([schedule_id])
    if not found:
        raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}")
    trigger = trigger_of(options, lambda: _zone(app, options, found[0].spec.tz))
    changed = reworded(found[0].spec, trigger, given_of(options))
    if changed == found[0].spec:
        raise click.UsageError("nothing is to be changed; say what, as in --cron '0 10 * * *' or --queue mail")
    app.schedules.register([(schedule_id, changed)], Origin(), by=by, expect_version=found[0].version)
    _tell(app, "changed", schedule_id)


def _zone(app: App, options: dict[str, Any], otherwise: str) -> str:
    """The zone in which a time that names none is meant: --tz, else that of --tenant, else the one it has without."""
    if options["tz"]:
        return str(options["tz"])
    return app.tenants.get(options["tenant"]).tz if options["tenant"] else otherwise


def _tell(app: App, what: str, schedule_id: str) -> None:
    view = app.schedules.get(schedule_id)
    now = datetime_of(app.open().now())
    ahead = f"; its next run is at {local(view.next_run)}, {relative(view.next_run, now)}" if view.next_run else ""
    paused = f"; it is {view.pause_reason}" if view.pause_reason else ""
    say(f"{what} {schedule_id}: {view.explain()}{ahead}{paused}")
    for warning in schedule_warnings(app.open(), view.record, app.open().now()):
        warn(warning.message)
    never = why_never(view.record, app.open().now())
    if never is not None:
        warn(f"{schedule_id} will not run again: {never}; `rota schedules edit {schedule_id}` gives it a time to come")
