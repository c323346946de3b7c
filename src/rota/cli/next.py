"""Runs `next`: explains a cron expression, lists its next runs, and warns about what may surprise."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import click

from rota.cli.columns import Column
from rota.cli.options import output_option
from rota.cli.output import Output, aligned, heading
from rota.cli.words import instant, local, relative
from rota.clock import utc_now
from rota.inspector.facts.cron import RunFacts, cron_facts, next_runs_of, run_facts
from rota.triggers import cron
from rota.triggers.cron_text import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.triggers import Trigger


@click.command("next")
@click.argument("expression", metavar="CRON")
@click.option("--tz", metavar="ZONE", help="An IANA name such as Europe/Paris.  [default: UTC]")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), help="How the text is read, if the number of fields does not decide it."
)
@click.option(
    "-n", "--number", type=click.IntRange(1, 10_000), metavar="N", default=10, help="How many runs.  [default: 10]"
)
@output_option
def next_runs(expression: str, tz: str | None, dialect: str | None, number: int, out: Output) -> None:
    """Explain "CRON", its next runs and what may surprise."""
    trigger = cron(expression, tz=tz, dialect=dialect)
    now = utc_now()
    runs = next_runs_of(trigger, number, now)
    if out.form in {"jsonl", "csv"}:
        out.rows(runs, _columns(now), RunFacts, run_facts, empty="")
    else:
        out.page(cron_facts(trigger, number, now), lambda: _page(trigger, runs, now))


def _page(trigger: Trigger, runs: list[datetime], now: datetime) -> Iterator[str]:
    yield heading(trigger.explain())
    yield ""
    if runs:
        cells = [[column.cell(run) for column in _columns(now)] for run in runs]
        yield from aligned(cells if trigger.tz not in {None, "UTC"} else [row[1:] for row in cells], indent="  ")
    else:
        yield "  no run lies ahead: its last one is over"
    for caveat in trigger.warnings(after=now):
        yield ""
        yield f"{click.style('warning:', fg='yellow')} {caveat.message}"


def _columns(now: datetime) -> list[Column[datetime]]:
    return [
        Column("local", lambda run: f"{run:%a} {local(run)}"),
        Column("UTC", lambda run: f"{run.astimezone(UTC):%a} {instant(run)}"),
        Column("away", lambda run: relative(run, now)),
    ]
