"""schedules add, edit, plan and apply: schedules that are made by hand, and what a deploy would change."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from rota.cli.enqueue import read_arguments
from rota.cli.options import check_duration, on_a_store, output_option
from rota.cli.output import Output, heading, say, write
from rota.cli.words import count, instant_from, local, relative
from rota.errors import ScheduleNotFound
from rota.model.micros import SECOND, datetime_of, micros_of, span_of
from rota.model.names import check_name, check_priority, check_schedule_id
from rota.model.schedule import CATCHUPS, OVERLAPS, Origin, ScheduleSpec, check_spec
from rota.triggers import trigger_from_text
from rota.triggers.zone import find_zone, zone_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.app import App
    from rota.model.planning import Planned
    from rota.model.schedule import Schedule
    from rota.triggers import Trigger

KINDS = ("cron", "every", "calendar", "once")
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


def _rule_options(function: Callable[..., None]) -> Callable[..., None]:
    """What a schedule can be told, besides its task."""
    options = [
        click.option("--cron", metavar="TEXT", help='Such as "0 9 * * mon-fri".'),
        click.option("--every", metavar="DURATION", help="Such as 90s or 1h30m."),
        click.option("--calendar", metavar="TEXT", help='Such as "months=1 at=00:05 start=2026-01-31".'),
        click.option("--once", metavar="TIME", help="Such as 2026-10-14T09:00Z."),
        click.option("--tz", metavar="ZONE", help="An IANA name such as Europe/Paris."),
        click.option("--overlap", type=click.Choice(OVERLAPS), help="While the run before goes on."),
        click.option("--catchup", type=click.Choice(CATCHUPS), help="Which missed runs are made up for."),
        click.option("--grace", metavar="DURATION", callback=check_duration, help="From when on a run is missed."),
        click.option("--jitter", metavar="DURATION", callback=check_duration, help="Spread over this long."),
        click.option("--start", metavar="TIME", help="None before this time."),
        click.option("--end", metavar="TIME", help="None after this time."),
        click.option("--max-runs", type=click.IntRange(1), metavar="N", help="So many, then no more."),
        click.option("--queue", metavar="NAME", help="Another queue than the task's own."),
        click.option("--priority", metavar="N", help="From -100 to 100, or low, normal, high."),
        click.option("--description", metavar="TEXT", help="For people."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.command("add")
@click.argument("schedule_id", metavar="ID")
@click.argument("task_name", metavar="TASK")
@click.argument("words", nargs=-1, metavar="[ARG | NAME=VALUE]...")
@_rule_options
@on_a_store
def add_schedule(app: App, schedule_id: str, task_name: str, words: tuple[str, ...], **options: Any) -> None:
    """Make a schedule that has a task run again and again."""
    trigger = _trigger_of(options)
    if trigger is None:
        raise click.UsageError("when is it to run? Give one of --cron, --every, --calendar and --once")
    if app.open().get_schedules([check_schedule_id(schedule_id)]):
        raise click.UsageError(f"schedule {schedule_id!r} exists; `rota schedules edit {schedule_id}` changes it")
    task = app.registry.get(task_name)
    arguments = read_arguments(task, words)
    request = task.job(*arguments.args, **arguments.kwargs)
    spec = ScheduleSpec(
        trigger=str(trigger),
        task=request.task,
        payload=request.payload.decode(),
        queue=request.queue,
        priority=request.priority,
        tz=trigger.tz or app.tz,
    )
    _register(app, schedule_id, _reworded(spec, options), expect_version=0)
    _tell(app, "added", schedule_id)


@click.command("edit")
@click.argument("schedule_id", metavar="ID")
@_rule_options
@on_a_store
def edit_schedule(app: App, schedule_id: str, **options: Any) -> None:
    """Change what is given; all else stays. New times hold from now on."""
    found = app.open().get_schedules([schedule_id])
    if not found:
        raise ScheduleNotFound(f"no schedule has the id {schedule_id!r}")
    trigger, spec = _trigger_of(options), found[0].spec
    if trigger is not None:
        spec = msgspec.structs.replace(spec, trigger=str(trigger), tz=trigger.tz or spec.tz)
    changed = _reworded(spec, options)
    if changed == found[0].spec:
        raise click.UsageError("nothing is to be changed; say what, as in --cron '0 10 * * *' or --queue mail")
    _register(app, schedule_id, changed, expect_version=found[0].version)
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
@on_a_store
@output_option
def apply_command(app: App, out: Output) -> None:
    """Bring the store to what the app declares; what it no longer declares is retired."""
    planned = _plan(app)
    _write_plan(app, planned, out)
    done = app.schedules.apply(planned)
    if planned:
        say(f"applied {count(done, 'change')}")


def _plan(app: App) -> Sequence[Planned]:
    if not app.declared and not len(app.registry):
        raise click.UsageError("the app whose schedules are planned is not named: add --app jobs.py, or set ROTA_APP")
    return app.schedules.plan(app.declared, Origin("code", app.name, app.version))


def _register(app: App, schedule_id: str, spec: ScheduleSpec, *, expect_version: int) -> None:
    app.schedules.register([(schedule_id, check_spec(spec))], Origin(), expect_version=expect_version)


def _trigger_of(options: dict[str, Any]) -> Trigger | None:
    said = {kind: options.pop(kind) for kind in KINDS}
    given = {kind: text for kind, text in said.items() if text is not None}
    if len(given) > 1:
        raise click.UsageError(f"--{' and --'.join(given)} both say when; give one of them")
    return next((trigger_from_text(f"{kind} {text}") for kind, text in given.items()), None)


def _reworded(spec: ScheduleSpec, options: dict[str, Any]) -> ScheduleSpec:
    """The spec with what was said on the command line."""
    readers: dict[str, Callable[[Any], object]] = {
        "tz": lambda text: find_zone(zone_name(text) or "UTC").name,
        "grace": span_of,
        "jitter": span_of,
        "start": lambda text: micros_of(instant_from(text)),
        "end": lambda text: micros_of(instant_from(text)),
        "queue": lambda text: check_name("queue", text),
        "priority": lambda text: check_priority(_number(text)),
    }
    given = {name: value for name, value in options.items() if value is not None}
    read = {name: readers[name](value) if name in readers else value for name, value in given.items()}
    return msgspec.structs.replace(spec, **read)


def _number(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _tell(app: App, what: str, schedule_id: str) -> None:
    view = app.schedules.get(schedule_id)
    now = datetime_of(app.open().now())
    ahead = f"; its next run is at {local(view.next_run)}, {relative(view.next_run, now)}" if view.next_run else ""
    say(f"{what} {schedule_id}: {view.explain()}{ahead}")


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
