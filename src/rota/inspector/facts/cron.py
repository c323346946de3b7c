"""Defines the meaning of a cron expression, as JSON shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.inspector.facts.values import filled

if TYPE_CHECKING:
    from rota.triggers import Trigger


class RunFacts(Struct, kw_only=True):
    """One run: the instant in UTC, and the wall time in the rule's zone."""

    utc: datetime
    local: str


class CaveatFacts(Struct, kw_only=True):
    """A warning about the times of a rule."""

    kind: str
    message: str
    at: datetime | None
    code: str  # of the message: stays the same if the message is reworded
    values: dict[str, str | int]  # of the message


class CronFacts(Struct, kw_only=True):
    """The meaning of an expression, its next runs, and warnings about it."""

    trigger: str
    sentence: str
    tz: str
    runs: list[RunFacts]
    warnings: list[CaveatFacts]


def next_runs_of(trigger: Trigger, number: int, now: datetime) -> list[datetime]:
    return trigger.bound(start=now.replace(microsecond=0)).next_runs(number, after=now)


def cron_facts(trigger: Trigger, number: int, now: datetime) -> CronFacts:
    return CronFacts(
        trigger=str(trigger),
        sentence=trigger.explain(),
        tz=trigger.tz or "UTC",
        runs=[run_facts(run) for run in next_runs_of(trigger, number, now)],
        warnings=[filled(CaveatFacts, caveat) for caveat in trigger.warnings(after=now)],
    )


def run_facts(run: datetime) -> RunFacts:
    return RunFacts(utc=run.astimezone(UTC), local=run.isoformat())
