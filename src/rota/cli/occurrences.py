"""Runs `schedules occurrences`: lists what became of each expected time of a schedule."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import click

from rota.cli.columns import Column
from rota.cli.options import on_a_store, output_option
from rota.cli.output import Output, say
from rota.cli.words import count, instant, local
from rota.inspector.facts.schedule import OccurrenceFacts
from rota.inspector.ledger import first_between
from rota.inspector.wall_times import day_or_time_from, in_zone
from rota.model.micros import SECOND, datetime_of, micros_of
from rota.operations.specs import bound_instant
from rota.store.contract import LARGEST_PAGE
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.model.schedules.schedule import Schedule

USUAL = timedelta(days=7)


@click.command("occurrences")
@click.argument("schedule_id", metavar="ID")
@click.option("--start", metavar="TIME", help="A day, or a time in its zone or with an offset.  [default: a week ago]")
@click.option("--end", metavar="TIME", help="As --start.  [default: now]")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", default=50, help="Show this many at most.")
@on_a_store
@output_option
def list_occurrences(app: App, schedule_id: str, start: str | None, end: str | None, limit: int, out: Output) -> None:
    """List what became of the expected times of a schedule, oldest first: a job, or a skip with its reason."""
    schedule = app.schedules.get(schedule_id)
    now = datetime_of(app.open().now())
    last = _instant("end", end, schedule.tz) or now
    first = _instant("start", start, schedule.tz) or last - USUAL
    if first > last:
        raise click.UsageError(f"--start {start} lies after the end, {instant(last)}")
    found = list(_read(app, schedule_id, first, last, limit + 1))
    span = f"between {instant(first)} and {instant(last)}"
    out.rows(
        found[:limit], _columns(schedule.record), OccurrenceFacts, lambda one: one, empty=f"no run was expected {span}"
    )
    if len(found) > limit:
        say(f"these are the oldest {limit:,} {span}; raise --limit, or give a later --start")


def _instant(name: str, text: str | None, tz: str) -> datetime | None:
    given: date | None = in_zone(day_or_time_from(text), tz) if text else None
    return None if given is None else datetime_of(bound_instant(name, given, tz))


def _read(app: App, schedule_id: str, start: datetime, end: datetime, most: int) -> Iterator[OccurrenceFacts]:
    cursor: str | None = None
    while most > 0:
        page = app.schedules.occurrences(schedule_id, start, end, limit=min(most, LARGEST_PAGE), cursor=cursor)
        yield from page.items
        most, cursor = most - len(page.items), page.cursor
        if cursor is None:
            return


def _columns(schedule: Schedule) -> list[Column[OccurrenceFacts]]:
    return [
        Column("time", lambda one: _times(one, schedule)),
        Column("outcome", lambda one: one.outcome if one.count == 1 else f"{one.outcome}, {count(one.count, 'time')}"),
        Column("why", lambda one: one.problem or one.reason or "-", "wrap"),
        Column("job", lambda one: one.job_id or "-"),
    ]


def _times(one: OccurrenceFacts, schedule: Schedule) -> str:
    """The time, or the first and the last of several."""
    zone = find_zone(schedule.spec.tz)
    through = micros_of(one.through)
    last = local(zone.datetime_of(through // SECOND))
    first = None if one.count == 1 else first_between(schedule, micros_of(one.after), through)
    return last if first is None or first == through else f"{local(zone.datetime_of(first // SECOND))} to {last}"
