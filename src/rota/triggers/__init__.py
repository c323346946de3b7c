"""Defines when schedules fire: pure rules for time, with no clock and no I/O."""

from __future__ import annotations

from rota.triggers.calendar import calendar
from rota.triggers.cron import cron
from rota.triggers.every import every
from rota.triggers.once import once
from rota.triggers.text import trigger_from_text
from rota.triggers.trigger import Caveat, Trigger

__all__ = ["Caveat", "Trigger", "calendar", "cron", "every", "once", "trigger_from_text"]
