"""Rota: a job scheduler and background-job system for Python."""

from __future__ import annotations

from rota.errors import (
    BadCron,
    BadCronField,
    BadDuration,
    BadInterval,
    BadTrigger,
    NaiveDatetime,
    RotaError,
    UnknownZone,
)
from rota.triggers import Caveat, Trigger, calendar, cron, every, once, trigger_from_text

__all__ = [
    "BadCron",
    "BadCronField",
    "BadDuration",
    "BadInterval",
    "BadTrigger",
    "Caveat",
    "NaiveDatetime",
    "RotaError",
    "Trigger",
    "UnknownZone",
    "calendar",
    "cron",
    "every",
    "once",
    "trigger_from_text",
]
