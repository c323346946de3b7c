"""Runs `why`: explains what became of an expected time of a schedule, or what a job waits for, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.naming import job_id_from, nothing_named
from rota.cli.options import on_a_store, output_option
from rota.cli.output import Output, heading
from rota.cli.words import printable
from rota.errors import BadOption, BadTrigger, ScheduleNotFound
from rota.inspector.wall_times import time_from
from rota.model.micros import datetime_of
from rota.triggers.zone import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.app import App
    from rota.inspector.facts.why import JobWhyFacts, WhyFacts
    from rota.triggers.zone import Zone


@click.command("why")
@click.argument("name", metavar="SCHEDULE|JOB")
@click.argument("at", metavar="[TIME]", required=False)
@on_a_store
@output_option
def why(app: App, name: str, at: str | None, out: Output) -> None:
    """Explain why SCHEDULE did or did not run, or JOB waits.

    TIME is a wall time in the schedule's zone (02:30, or 2026-03-08 02:30) or an instant (2026-03-08T07:30Z). Without
    it, the last expected time is looked at, or the first one to come. A name that no schedule has is the id of a job,
    or how one begins.
    """
    store = app.open()
    found = store.get_schedules([name])
    job_id = None if found else job_id_from(store, name)
    if job_id is not None:
        _why_job(app, job_id, at, out)
        return
    zone = _zone_of(found[0].spec.tz if found else "UTC")
    try:
        verdict = app.schedules.why(name, time_from(at, zone, datetime_of(store.now())) if at else None)
    except ScheduleNotFound as err:
        raise nothing_named(store, name) from err
    out.page(verdict, lambda: _page(verdict, verdict.job_id))


def _why_job(app: App, job_id: str, at: str | None, out: Output) -> None:
    if at:
        raise BadOption(f"{job_id} is a job, and the answer is about now; leave {at!r} out")
    verdict = app.jobs.why(job_id)
    out.page(verdict, lambda: _page(verdict, verdict.waits_for))


def _zone_of(tz: str) -> Zone:
    """A schedule's zone; UTC if what is stored is none, so that such a schedule can be asked about."""
    try:
        return find_zone(tz)
    except BadTrigger:
        return find_zone("UTC")


def _page(verdict: WhyFacts | JobWhyFacts, job_id: str | None) -> Iterator[str]:
    yield heading(verdict.outcome)
    yield printable(verdict.sentence)
    if verdict.fix:
        yield f"{click.style('what to do:', fg='yellow')} {verdict.fix}"
    if job_id:
        yield f"job: {job_id}"
