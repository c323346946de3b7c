"""Defines the options of every command that pauses something, and reads the end of the pause."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from rota.cli.options import check_duration
from rota.inspector.typed_times import instant_from
from rota.model.micros import span_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


def pause_options(function: Callable[..., None]) -> Callable[..., None]:
    """--until, --for and --reason."""
    options = [
        click.option("--until", metavar="TIME", help="Resume by itself at this time, such as 2026-10-14T09:00Z."),
        click.option(
            "--for", "span", metavar="DURATION", callback=check_duration, help="Resume by itself after this long."
        ),
        click.option("--reason", default="", help="Why; recorded with every run that is skipped."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def end_of_pause(now: datetime, until: str | None, span: str | None) -> datetime | None:
    """The end of the pause; None if it has no end of its own."""
    if until and span:
        raise click.UsageError("--until and --for both say when the pause ends; give one of them")
    if span:
        return now + timedelta(microseconds=span_of(span))
    end = instant_from(until) if until else None
    if end is not None and end <= now:
        raise click.UsageError(f"--until {until} lies in the past")
    return end
