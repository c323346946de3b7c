"""Writes log lines to stderr by standard logging, with a line for each job that ran and each schedule that fired."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from rota.app import internals
from rota.cli.job_lines import extra, job_log, write_settled, write_started
from rota.cli.text_lines import TextLines
from rota.cli.words import instant
from rota.model.micros import datetime_of
from rota.observe.json_lines import JsonLines
from rota.observe.line_handler import LineHandler

if TYPE_CHECKING:
    from rota.app import App
    from rota.engine.events import Event

LEVELS = ("debug", "info", "warning", "error")

schedule_log = logging.getLogger("rota.schedule")


def set_up_logging(level: str, form: str = "text") -> None:
    """Log to stderr, unless the app's own code has set logging up otherwise."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("rota").setLevel(number)
    root = logging.getLogger()
    if root.handlers:
        return
    handler = LineHandler(sys.stderr)  # the real one: what jobs write to stderr is kept as their log
    has_colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(JsonLines() if form == "json" else TextLines(has_colours=has_colours))
    root.addHandler(handler)
    root.setLevel(number)


def log_successes(app: App, form: str = "text") -> None:
    """Write what a person who watches wants to see; the app itself logs what went wrong.

    Only what the level lets through is listened for, so that the rest costs nothing. JSON is for programs that collect
    logs: there a line per job must be asked for.
    """
    events = internals(app).events
    if job_log.isEnabledFor(logging.DEBUG):
        events.count_starts(write_started)
    if job_log.isEnabledFor(logging.DEBUG if form == "json" else logging.INFO):
        events.count(write_settled)
    if schedule_log.isEnabledFor(logging.INFO):
        app.on("schedule.fired", _log_firing)


def _log_firing(event: Event) -> None:
    data = event.data
    then = f"next at {instant(datetime_of(data['next_at']))}" if data["next_at"] else "that was its last run"
    about = f" ({data['description']})" if data["description"] else ""
    schedule_log.info(
        "schedule %s%s fired %s as job %s; %s",
        data["schedule_id"],
        about,
        data["task"],
        data["job_id"],
        then,
        extra=extra(event),
    )
