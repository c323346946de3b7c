"""Defines the times that a schedule would have if it were saved, as JSON shows them beside its present times."""

from __future__ import annotations

from msgspec import Struct

from rota.inspector.facts.cron import CaveatFacts, RunFacts


class TimesFacts(Struct, kw_only=True):
    """The times of a schedule: its rule in words, and its next runs."""

    sentence: str
    rule: str  # as text, with its start and zone: a reader can explain it in another language
    tz: str
    runs: list[RunFacts]
    week: int  # runs in the next 7 days


class PreviewFacts(TimesFacts, kw_only=True):
    """The times of a definition, warnings about them, and the present times if the schedule exists."""

    trigger: str
    warnings: list[CaveatFacts]
    before: TimesFacts | None
