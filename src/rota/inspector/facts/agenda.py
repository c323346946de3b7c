"""The runs of the coming days, as JSON shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.inspector.occurrences import Coming, coming_runs
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.model.schedule import Schedule

OFTEN = 3  # runs a day; a schedule with more has one entry
DAY = 86_400 * SECOND


class AgendaFacts(Struct, kw_only=True):
    """One coming run; `count` above 1: the first of so many within the window."""

    at: datetime
    local: str
    schedule_id: str
    sentence: str
    count: int


class Entry(NamedTuple):
    """One entry of the agenda."""

    at: datetime
    coming: Coming
    number: int = 1  # of runs that this entry stands for


def read_agenda(schedules: Iterable[Schedule], now: int, days: int) -> list[Entry]:
    """What is to run within so many days, the earliest first."""
    entries = _entries(coming_runs(schedules, now, now + days * DAY, OFTEN * days + 1), days)
    return sorted(entries, key=lambda entry: (entry.at, entry.coming.schedule_id))


def agenda_facts(entry: Entry) -> AgendaFacts:
    return AgendaFacts(
        at=entry.at.astimezone(UTC),
        local=entry.at.isoformat(),
        schedule_id=entry.coming.schedule_id,
        sentence=entry.coming.sentence,
        count=entry.number,
    )


def _entries(everything: Iterator[Coming], days: int) -> Iterator[Entry]:
    for coming in everything:
        if coming.count > OFTEN * days:
            yield Entry(coming.runs[0], coming, coming.count)
        else:
            yield from (Entry(run, coming) for run in coming.runs)
