"""next: what a cron expression means, when it fires, and what about it may surprise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rota.cli.columns import Column
from rota.cli.options import output_option
from rota.cli.output import Output, aligned, heading
from rota.cli.words import instant, local, relative
from rota.clock import utc_now
from rota.triggers import cron
from rota.triggers.cron_text import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.triggers import Trigger


class RunFacts(Struct, kw_only=True):
    """One run: the instant in UTC, and the wall time that it has in the rule's zone."""

    utc: datetime
    local: str


class WarningFacts(Struct, kw_only=True):
    """Something that may surprise."""

    kind: str
    message: str
    at: datetime | None


class NextFacts(Struct, kw_only=True):
    """What is known about an expression."""

    trigger: str
    sentence: str
    tz: str
    runs: list[RunFacts]
    warnings: list[WarningFacts]


@click.command("next")
@click.argument("expression", metavar="CRON")
@click.option("--tz", metavar="ZONE", help="An IANA name such as Europe/Paris.  [default: UTC]")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Where the number of fields does not say it.")
@click.option(
    "-n", "--number", type=click.IntRange(1, 10_000), metavar="N", default=10, help="How many runs.  [default: 10]"
)
@output_option
def next_runs(expression: str, tz: str | None, dialect: str | None, number: int, out: Output) -> None:
    """What "CRON" means, its next runs, and what to beware of."""
    trigger = cron(expression, tz=tz, dialect=dialect)
    now = utc_now()
    runs = trigger.bound(start=now.replace(microsecond=0)).next_runs(number, after=now)
    if out.form in {"jsonl", "csv"}:
        out.rows(runs, _columns(now), RunFacts, _run_facts, empty="")
    else:
        out.page(_facts(trigger, runs, now), lambda: _page(trigger, runs, now))


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


def _facts(trigger: Trigger, runs: list[datetime], now: datetime) -> NextFacts:
    return NextFacts(
        trigger=str(trigger),
        sentence=trigger.explain(),
        tz=trigger.tz or "UTC",
        runs=[_run_facts(run) for run in runs],
        warnings=[
            WarningFacts(kind=caveat.kind, message=caveat.message, at=caveat.at)
            for caveat in trigger.warnings(after=now)
        ],
    )


def _run_facts(run: datetime) -> RunFacts:
    return RunFacts(utc=run.astimezone(UTC), local=run.isoformat())
