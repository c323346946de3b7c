"""Says what became of a time that has no record because the schedule's times or its zone were changed.

A local time or date that had its turn by the old times has none by the new ones. The audit records say who changed
them, and the ledger which run stands for the time in question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rota.model.audit_record import AuditRecord
from rota.model.micros import iso_text
from rota.model.schedules import wording
from rota.model.schedules.occurrence import Occurrence
from rota.model.why.job import Answer, Values
from rota.model.why.time_words import wall_words

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Schedule


class Instead(Struct, frozen=True, kw_only=True):
    """The run that stands for a time after a change of the schedule's times or zone."""

    audit: AuditRecord  # of the change
    occurrence: Occurrence | None = None  # the run by the times or the zone before; None: see `run_at`
    run_at: int | None = None  # of a date that the clocks of two zones more than a day apart leave out
    is_date: bool = False  # the entry is of the same local date, not of the same local time


class Changes(Struct, frozen=True, kw_only=True):
    """How a schedule's times were changed around an instant that has no record."""

    later: AuditRecord | None = None  # the first change after the instant
    instead: Instead | None = None


def changed_answer(schedule: Schedule, at: int, changes: Changes, now: int) -> Answer:
    """The answer about a time of the present rule that is decided, and that has no entry in the ledger."""
    if changes.instead is not None:
        return _stood_for(schedule, at, changes.instead)
    if changes.later is not None:
        words = f"The schedule was not due then. {change_words(changes.later)}"
        return Answer(
            outcome="not expected", words=words, code="not_expected.changed_later", values=change_values(changes.later)
        )
    is_done = any(one.is_date and one.after < at <= one.through for one in schedule.detours)
    if is_done or (at > now and schedule.generation > 1):
        words = (
            "The schedule is not due then. Its zone or its times were changed, and another run stands for this time."
        )
        return Answer(outcome="not expected", words=words, code="not_expected.other_run")
    words = "No record of this time is kept."
    fix = "Occurrences are kept for 400 days or the last 1,000; the settings under retention: change that."
    return Answer(outcome="forgotten", words=words, fix=fix, code="forgotten")


def _stood_for(schedule: Schedule, at: int, instead: Instead) -> Answer:
    changed, values = change_words(instead.audit), change_values(instead.audit)
    if instead.occurrence is None:
        values |= {"run_at": iso_text(instead.run_at or at)}
        then = wall_words(instead.run_at or at, schedule.spec.tz)
        words = f"No clock of the schedule showed this local time. Its run is the one at {then}. {changed}"
        fix = "The zones are more than 24 hours apart: a local date between them has its run right after the change."
        return Answer(outcome="run after the move", words=words, fix=fix, code="changed.left_out", values=values)
    tz = tz_before(instead.audit) if is_move(instead.audit) else schedule.spec.tz
    then = wall_words(instead.occurrence.through_at, tz)
    values |= {"run_at": iso_text(instead.occurrence.through_at)}
    already = "already, " if instead.occurrence.through_at < at else ""
    if instead.is_date:
        words = f"This local date had its turn {already}at {then}. {changed} A new wall time does not run a date again."
        return Answer(outcome="done before the change", words=words, code="changed.date_done", values=values)
    words = f"This local time had its turn {already}at {then}. {changed} No local time runs twice."
    return Answer(outcome="done before the move", words=words, code="changed.time_done", values=values)


def put_into_past(audit: AuditRecord) -> str:
    """Why a time was missed although schedulers were running."""
    return f"The clock of the new zone had passed this time when the zone was changed. {change_words(audit)}"


def change_words(audit: AuditRecord) -> str:
    """The change of its times in words: the author, the time and the differences."""
    before, after = msgspec.json.decode(audit.before or "{}"), msgspec.json.decode(audit.after or "{}")
    said = wording.differences(timing_of(before), timing_of(after), wording.OF_SCHEDULE)
    return f"Its times were changed by {audit.by} at {wall_words(audit.at, 'UTC')} ({'; '.join(map(str, said))})."


def change_values(audit: AuditRecord) -> Values:
    """The author and the time of the change, for programs."""
    return {"changed_by": audit.by, "changed_at": iso_text(audit.at)}


def timing_of(facts: dict[str, object]) -> dict[str, object]:
    """The facts of an audit record that decide when a schedule runs."""
    return {name: facts[name] for name in ("trigger", "tz", "start", "end", "jitter", "max_runs") if name in facts}


def is_retiming(audit: AuditRecord) -> bool:
    return audit.verb != "created" and bool(timing_of(_changed(audit)))


def is_move(audit: AuditRecord) -> bool:
    """Whether it changed the zone."""
    return "tz" in _changed(audit)


def tz_before(audit: AuditRecord) -> str:
    """The zone before a move."""
    tz: str = msgspec.json.decode(audit.before or "{}").get("tz", "UTC")
    return tz


def _changed(audit: AuditRecord) -> dict[str, object]:
    """The facts that an audit record says have changed. Of a value that was or became the default, it has the other
    one alone."""
    before, after = (msgspec.json.decode(facts or "{}") for facts in (audit.before, audit.after))
    return {**after, **before}
