"""Formats log records as lines of text for people."""

from __future__ import annotations

import logging
import time

import click

from rota.engine.executors.run import current_run
from rota.observe.secrets import without_secrets

_COLOURS = {"DEBUG": "bright_black", "INFO": "blue", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


class TextLines(logging.Formatter):
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
        text = f"{self.head(record)}{record.getMessage().rstrip()}"
        ids = record.__dict__.get("trace_id")  # only rota.otel gives a record one, and only inside a span
        return text if ids is None else f"{text} (trace {ids}, span {record.__dict__.get('span_id')})"

    def head(self, record: logging.LogRecord) -> str:
        """The text before the message."""
        level = f"{record.levelname:<7}"
        colour = self._colours.get(record.levelname)
        shown = click.style(level, fg=colour) if colour else level
        return f"{self.formatTime(record)} {shown} {record.name}: "
