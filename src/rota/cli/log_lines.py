"""Log lines on stderr: standard logging, with a line for each job that ran and each schedule that fired."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import TYPE_CHECKING

import click

from rota.cli.words import instant, span
from rota.engine.executors.run import current_run
from rota.model.micros import SECOND, datetime_of
from rota.observe.json_lines import JsonLines
from rota.observe.secrets import without_secrets

if TYPE_CHECKING:
    from rota.app import App
    from rota.engine.events import Event

LEVELS = ("debug", "info", "warning", "error")

_COLOURS = {"DEBUG": "bright_black", "INFO": "blue", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}

job_log = logging.getLogger("rota.job")
schedule_log = logging.getLogger("rota.schedule")


class Formatter(logging.Formatter):
    """2026-10-14T09:00:00.123Z INFO    rota.job: job 1a1d… (mail.send) succeeded in 12 ms"""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self, *, has_colours: bool) -> None:
        super().__init__()
        self._colours = _COLOURS if has_colours else {}

    def format(self, record: logging.LogRecord) -> str:
        text, run = super().format(record), current_run()
        return without_secrets(text if run is None else run.hide(text))  # in a job these are its own words

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        level = f"{record.levelname:<7}"
        colour = self._colours.get(record.levelname)
        shown = click.style(level, fg=colour) if colour else level
        return f"{self.formatTime(record)} {shown} {record.name}: {record.getMessage().rstrip()}"


def set_up_logging(level: str, form: str = "text") -> None:
    """Log to stderr, unless the app's own code has set logging up otherwise."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("rota").setLevel(number)
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)  # the real one: what jobs write to stderr is kept as their log
    has_colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(JsonLines() if form == "json" else Formatter(has_colours=has_colours))
    root.addHandler(handler)
    root.setLevel(number)


def log_successes(app: App, form: str = "text") -> None:
    """Write what a person who watches wants to see; the app itself logs what went wrong.

    Only what the level lets through is listened for, so that the rest costs nothing. A line per job costs more than
    some jobs do: where no person reads along, it must be asked for.
    """
    if job_log.isEnabledFor(logging.DEBUG):
        app.on("job.started", _log_start)
    if job_log.isEnabledFor(logging.DEBUG if form == "json" else logging.INFO):
        app.on("job.succeeded", _log_success)
    if schedule_log.isEnabledFor(logging.INFO):
        app.on("schedule.fired", _log_firing)


def _log_start(event: Event) -> None:
    data = event.data
    job_log.debug("job %s (%s) started, attempt %s", data["job_id"], data["task"], data["attempt"], extra=_extra(event))


def _log_success(event: Event) -> None:
    data = event.data
    took = span((event.at - data["started_at"]) / SECOND) if data["started_at"] else "no time"
    job_log.info("job %s (%s) succeeded in %s", data["job_id"], data["task"], took, extra=_extra(event))


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
        extra=_extra(event),
    )


def _extra(event: Event) -> dict[str, object]:
    """For those who read fields."""
    return {"rota": {"event": event.name, **event.data}}
