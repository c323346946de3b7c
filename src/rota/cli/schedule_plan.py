"""Runs `schedules plan` and `apply`: shows what a deploy would change, by where it is declared, or changes it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.app import internals
from rota.cli.misfits import misfits
from rota.cli.options import by_option, on_a_store_or_none, on_a_store_to_be, output_option
from rota.cli.output import Output, heading, say, warn, write
from rota.cli.words import count, listed, local
from rota.config.words import shown_path
from rota.deploy.deploy import apply, plan
from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.origin import describe_origin
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.app import App
    from rota.cli.misfits import Misfit
    from rota.deploy.deploy import DeployPlan
    from rota.deploy.tenants import PlannedTenant
    from rota.model.schedules.planning import Planned
    from rota.model.schedules.schedule import Origin, Schedule

MARKS = {
    "add": ("+", "green"),
    "restore": ("+", "green"),
    "retire": ("-", "red"),
    "re-time": ("~", "yellow"),
    "change": ("~", "yellow"),
    "refused": ("!", "red"),
    "newer": ("!", "yellow"),
    "unfit": ("!", "red"),
}
LEFT_ALONE = {"newer": "a newer version of this app has set them", "refused": "they are defined elsewhere"}


class PlannedFacts(Struct, kw_only=True):
    """The fields of a planned change in JSON and CSV; times are UTC."""

    id: str
    kind: str
    says: list[str]
    runs_before: list[datetime]
    runs_after: list[datetime]
    what: str  # schedule or tenant; of what is unfit, schedule or job
    origin: str  # where it is declared: code or file


@click.command("plan")
@click.option("--check", is_flag=True, help="Exit with 1 if something would change.")
@on_a_store_or_none
@output_option
def plan_command(app: App, out: Output, *, check: bool) -> None:
    """Show what the next start of the app would change: what it declares and what it no longer declares."""
    planned = _planned(app)
    _write_plan(app, planned, out, nothing="nothing would change")
    if check and (planned.tenants or planned.schedules):
        click.get_current_context().exit(1)


@click.command("apply")
@by_option
@on_a_store_to_be
@output_option
def apply_command(app: App, by: str, out: Output) -> None:
    """Update the store to what the code and rota.yaml declare; retire what they no longer declare."""
    planned = _planned(app)
    _write_plan(app, planned, out, nothing="nothing was to be changed")
    apply(internals(app).deploy, app, by=by)
    say(*_done(planned))


def _done(planned: DeployPlan) -> Iterator[str]:
    """A sentence about what was applied and what was not. A schedule that followed its tenant counts as one."""
    kinds = [("tenant", str(one.kind)) for one in planned.tenants]
    kinds += [("schedule", str(one.kind)) for _, one in planned.schedules]
    made = Counter(noun for noun, kind in kinds if kind not in LEFT_ALONE)
    if made:
        yield f"applied {count(made.total(), 'change')}: {_counted(made)}"
    for left, why in LEFT_ALONE.items():
        if alone := Counter(noun for noun, kind in kinds if kind == left):
            yield f"left alone, because {why}: {_counted(alone)}"


def _counted(numbers: Counter[str]) -> str:
    return listed([count(number, noun) for noun, number in numbers.items()])


def _planned(app: App) -> DeployPlan:
    if not internals(app).declared and not len(internals(app).registry):
        raise click.UsageError("the app whose schedules are planned is not named: add --app jobs.py, or set ROTA_APP")
    for complaint in internals(app).deploy.unknown_tasks.values():
        warn(f"{complaint}; the schedule is left alone")
    return plan(internals(app).deploy, app)


def _write_plan(app: App, planned: DeployPlan, out: Output, *, nothing: str) -> None:
    now = app.open().now()
    unfit = list(misfits(app, app.open(), but={one.id for _, one in planned.schedules}))
    if out.form == "table":
        for line in (*_page(app, planned, now, nothing), *_unfit_lines(unfit)):
            write(line)
        return
    facts = [*map(_tenant_facts, planned.tenants), *(_facts(origin, one, now) for origin, one in planned.schedules)]
    out.rows([*facts, *map(_unfit_facts, unfit)], [], PlannedFacts, lambda fact: fact, empty="")


def _page(app: App, planned: DeployPlan, now: int, nothing: str) -> Iterator[str]:
    if not planned.tenants and not planned.schedules:
        yield nothing
    if planned.tenants:
        yield f"tenants of {_file_of(app)}"
        yield from (line for one in planned.tenants for line in _tenant_lines(one))
    for origin in dict.fromkeys(origin for origin, _ in planned.schedules):
        where = _file_of(app) if origin.kind == "file" else describe_origin(origin)
        yield f"schedules of {where}"
        yield from (line for found, one in planned.schedules if found == origin for line in _lines(one, now))


def _file_of(app: App) -> str:
    file = internals(app).resolved.file
    return shown_path(file) if file else "the file"


def _tenant_lines(one: PlannedTenant) -> Iterator[str]:
    mark, colour = MARKS[one.kind]
    yield f"{click.style(mark, fg=colour)} {heading(one.name)}  {one.kind}"
    yield from (f"    {line}" for line in one.says)


def _lines(one: Planned, now: int) -> Iterator[str]:
    mark, colour = MARKS[one.kind]
    yield f"{click.style(mark, fg=colour)} {heading(one.id)}  {one.kind}"
    yield from (f"    {line}" for line in one.says)
    if one.kind in {"retire", "re-time"}:
        yield f"    next runs were:  {_runs(one, one.before, now)}"
    if one.kind in {"add", "restore", "re-time"}:
        yield f"    next runs:       {_runs(one, one.after, now)}"


def _runs(one: Planned, schedule: Schedule | None, now: int) -> str:
    runs: Sequence[int] = one.runs(schedule, now)
    if schedule is None or not runs:
        return "none"
    return ", ".join(local(find_zone(schedule.spec.tz).datetime_of(run // SECOND)) for run in runs)


def _unfit_lines(unfit: list[Misfit]) -> Iterator[str]:
    """Waiting jobs and schedules that will fail, because the signature of their task has changed."""
    mark, colour = MARKS["unfit"]
    if unfit:
        yield "arguments that the code does not take"
    yield from (f"{click.style(mark, fg=colour)} {one.sentence}" for one in unfit)


def _unfit_facts(one: Misfit) -> PlannedFacts:
    """One entry for each task; its id is that of one job or schedule."""
    return PlannedFacts(
        id=one.example, kind="unfit", says=[one.sentence], runs_before=[], runs_after=[], what=one.what, origin="code"
    )


def _facts(origin: Origin, one: Planned, now: int) -> PlannedFacts:
    return PlannedFacts(
        id=one.id,
        kind=one.kind,
        says=one.says,
        runs_before=[datetime_of(run) for run in one.runs(one.before, now)],
        runs_after=[datetime_of(run) for run in one.runs(one.after, now)],
        what="schedule",
        origin=origin.kind,
    )


def _tenant_facts(one: PlannedTenant) -> PlannedFacts:
    return PlannedFacts(
        id=one.name, kind=one.kind, says=one.says, runs_before=[], runs_after=[], what="tenant", origin="file"
    )
