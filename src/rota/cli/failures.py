"""Runs `jobs failures`: groups failed jobs by their cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.options import check_duration, on_a_store, output_option
from rota.cli.output import aligned, heading
from rota.cli.words import beside, count, listed, printable
from rota.inspector.facts.failure import LAST, MOST_READ, read_failures
from rota.model.micros import datetime_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rota.app import App
    from rota.cli.output import Output
    from rota.inspector.facts.failure import FailuresFacts


@click.command("failures")
@click.option(
    "--last",
    metavar="DURATION",
    default=LAST,
    callback=check_duration,
    help="Only jobs that failed within this time.  [default: 24h]",
)
@on_a_store
@output_option
def show_failures(app: App, last: str, out: Output) -> None:
    """Group failed jobs by cause, the newest first."""
    store = app.open()
    found = read_failures(store, last)
    now = datetime_of(store.now())
    out.page(found, lambda: _page(found, last, now))


def _page(found: FailuresFacts, last: str, now: datetime) -> Iterator[str]:
    if not found.items:
        yield f"no job failed in the last {last}"
        return
    if found.truncated:
        yield f"these are the newest {MOST_READ:,} failures; there are more"
        yield ""
    for failure in found.items:
        yield heading(printable(failure.title))
        rows = [
            ["jobs", f"{count(failure.count, 'job')} of {listed(failure.tasks)}"],
            ["raised in", printable(failure.place) or "-"],
            ["first", beside(failure.first_at, now)],
            ["last", f"{beside(failure.last_at, now)}, job {failure.job_id}"],
        ]
        yield from aligned(rows)
        yield ""
