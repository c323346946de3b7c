"""Lists the runs of the coming days, as JSON shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.inspector.occurrences import Coming, coming_runs, may_run_by
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_state import schedule_problem
from rota.model.micros import SECOND, micros_of
from rota.store.contract import Page
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.store.contract import Store

OFTEN = 3  # runs a day; a schedule with more has one entry
DAY = 86_400 * SECOND


class AgendaFacts(Struct, kw_only=True):
    """One coming run; if `count` is above 1, it is the first of so many within the window."""

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


def read_agenda(store: Store, now: int, days: int) -> list[Entry]:
    """The runs within so many days, the earliest first.

    All schedules are read once. The times of one are computed only if it may have a run within these days: most of many
    thousand have none.
    """
    end = now + days * DAY
    near = (one for one in all_schedules(store) if may_run_by(one, end) and schedule_problem(one) is None)
    entries = _entries(coming_runs(near, now, end, OFTEN * days + 1, first_of_more=True), days)
    return sorted(entries, key=lambda entry: (entry.at, entry.coming.schedule_id))


def agenda_page(store: Store, days: int, *, limit: int = 50, cursor: str | None = None) -> Page[AgendaFacts]:
    """A page of the agenda; its cursor is the instant and the schedule of its last entry."""
    entries = read_agenda(store, store.now(), days)
    at, _, name = (cursor or "").partition("-")
    after = [entry for entry in entries if not cursor or _position(entry) > (int(at), name)]
    page = page_of(after, limit, lambda entry: "{}-{}".format(*_position(entry)))
    return Page([agenda_facts(entry) for entry in page.items], page.cursor)


def _position(entry: Entry) -> tuple[int, str]:
    return micros_of(entry.at), entry.coming.schedule_id


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
            yield Entry(coming.first, coming, coming.count)
        else:
            yield from (Entry(run, coming) for run in coming.runs)
