"""Defines the answers of `why`, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.inspector.facts.values import filled
from rota.model.jobs.job import State
from rota.model.micros import datetime_of, optional_datetime

if TYPE_CHECKING:
    from rota.model.why.job import JobVerdict
    from rota.model.why.schedule import Verdict


class WhyFacts(Struct, kw_only=True):
    """Why a schedule did or did not run at an instant, and the expected times next to it."""

    schedule_id: str
    at: datetime
    outcome: str
    sentence: str
    code: str  # of the cause: stays the same if the sentence is reworded
    values: dict[str, str | int | float | None]  # of the sentence; instants are ISO text, spans are seconds
    fix: str
    job_id: str | None
    before: datetime | None
    after: datetime | None


class JobWhyFacts(Struct, kw_only=True):
    """The state of a job, what it waits for, and what to do."""

    job_id: str
    state: State
    outcome: str
    sentence: str
    code: str  # of the cause: stays the same if the sentence is reworded
    values: dict[str, str | int | float | None]  # of the sentence; instants are ISO text, spans are seconds
    fix: str
    waits_for: str | None  # the job that must end first
    due_at: datetime | None  # when it may run, if that time is still to come


def why_facts(verdict: Verdict) -> WhyFacts:
    return filled(
        WhyFacts,
        verdict,
        at=datetime_of(verdict.at),
        before=optional_datetime(verdict.before),
        after=optional_datetime(verdict.after),
    )


def job_why_facts(verdict: JobVerdict) -> JobWhyFacts:
    return filled(JobWhyFacts, verdict, due_at=optional_datetime(verdict.due_at))
