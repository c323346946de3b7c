"""Runs `agenda`: lists the runs of the coming days. A schedule that runs several times a day takes one line."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from rota.cli.columns import Column
from rota.cli.options import on_a_store, output_option
from rota.cli.output import Output, aligned, heading, write
from rota.cli.words import count, local, relative
from rota.inspector.facts.agenda import OFTEN, AgendaFacts, Entry, agenda_facts, read_agenda
from rota.model.micros import datetime_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.app import App


@click.command("agenda")
@click.option("--days", type=click.IntRange(1, 366), metavar="N", default=7, help="How many days ahead.  [default: 7]")
@on_a_store
@output_option
def agenda(app: App, days: int, out: Output) -> None:
    """List the runs of the coming days."""
    store = app.open()
    now = store.now()
    entries = read_agenda(store, now, days)
    if out.form == "table":
        for line in _page(entries, datetime_of(now), days, ZoneInfo(app.settings.tz)):
            write(line)
    else:
        out.rows(entries, [], AgendaFacts, agenda_facts, empty="")


def _page(entries: list[Entry], now: datetime, days: int, zone: ZoneInfo) -> Iterator[str]:
    """Days and times in the app's timezone; the last but one column has each schedule's own."""
    often = [entry for entry in entries if entry.number > 1]
    listed = [entry for entry in entries if entry.number == 1]
    if not entries:
        yield f"nothing is to run within {count(days, 'day')}"
    if often:
        yield heading(f"more than {OFTEN} times a day")
        yield from aligned([_often(entry, now) for entry in often], indent="  ")
    for day, of_day in groupby(listed, key=lambda entry: entry.at.astimezone(zone).date()):
        yield ""
        yield heading(f"{day:%A %Y-%m-%d} ({zone.key})")
        yield from aligned([[column.cell(entry) for column in _columns(now, zone)] for entry in of_day], indent="  ")


def _often(entry: Entry, now: datetime) -> list[str]:
    coming = entry.coming
    return [coming.schedule_id, coming.sentence, count(entry.number, "run"), f"the next {relative(entry.at, now)}"]


def _columns(now: datetime, zone: ZoneInfo) -> list[Column[Entry]]:
    return [
        Column("time", lambda entry: f"{entry.at.astimezone(zone):%H:%M:%S}"),
        Column("away", lambda entry: relative(entry.at, now)),
        Column("schedule", lambda entry: entry.coming.schedule_id),
        Column("local", lambda entry: local(entry.at)),
        Column("rule", lambda entry: entry.coming.sentence, narrow="cut"),
    ]
