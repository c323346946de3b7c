"""The runs of the coming days, as JSON shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.inspector.occurrences import Coming, coming_runs, may_run_by
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_state import schedule_problem
from rota.inspector.search import matching_jobs
from rota.model.jobs.state import State
from rota.model.micros import SECOND, micros_of
from rota.store.contract import JobFilter, Page
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

FIRST_LOOK, WIDER = 400, 8  # schedules that are looked at first; each further look is at so many times as many
MOST_AHEAD = 1_000  # jobs that wait for their time and are looked through for those that were made ahead
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


class Look(NamedTuple):
    """What one look at the earliest schedules found, and up to when that is all that is to run."""

    entries: list[Entry]  # the earliest first
    known_until: int | None  # None: these are all


def read_agenda(store: Store, now: int, days: int) -> list[Entry]:
    """What is to run within so many days, the earliest first.

    Schedules that are due later are not read, unless many jobs wait for their time: some may have been made ahead.
    """
    *_, last = _looks(store, now, days, FIRST_LOOK)
    return last.entries


def agenda_page(store: Store, days: int, *, limit: int = 50, cursor: str | None = None) -> Page[AgendaFacts]:
    """A page of the agenda; its cursor is the instant and the schedule of its last entry."""
    at, _, name = (cursor or "").partition("-")
    for look in _looks(store, store.now(), days, FIRST_LOOK):
        known = (one for one in look.entries if look.known_until is None or _position(one)[0] < look.known_until)
        after = [entry for entry in known if not cursor or _position(entry) > (int(at), name)]
        if len(after) > limit:
            break
    page = page_of(after, limit, lambda entry: "{}-{}".format(*_position(entry)))
    return Page([agenda_facts(entry) for entry in page.items], page.cursor)


def _looks(store: Store, now: int, days: int, number: int) -> Iterator[Look]:
    """The runs of the earliest schedules by the index of what is due, of more of them each time, up to all.

    One that is not read yet is due later, and so are its runs. Only runs that were made ahead may come before their
    schedule is due again: their jobs wait, and name it.
    """
    end = now + days * DAY
    ahead, read = _with_jobs_ahead(store), -1
    if ahead is None:
        yield Look(_entries_of(all_schedules(store), now, days), None)
        return
    while True:
        due = store.due_schedules(number, now=end)
        found = {one.id: one for one in (*ahead, *due.schedules)}
        is_all = due.next_due_at is None or due.next_due_at > end or len(due.schedules) == read
        yield Look(_entries_of(found.values(), now, days), None if is_all else due.next_due_at)
        if is_all:
            return
        number, read = number * WIDER, len(due.schedules)


def _with_jobs_ahead(store: Store) -> list[Schedule] | None:
    """The schedules of jobs that were made ahead and wait for their time; None if too many jobs wait to look for them.

    Such a schedule may be due after the days asked for, or have ended.
    """
    waiting = list(matching_jobs(store, JobFilter(states=(State.SCHEDULED,)), most=MOST_AHEAD + 1))
    if len(waiting) > MOST_AHEAD:
        return None
    names = dict.fromkeys(job.schedule_id for job in waiting if job.ahead is not None and job.schedule_id)
    return store.get_schedules(list(names)) if names else []


def _entries_of(schedules: Iterable[Schedule], now: int, days: int) -> list[Entry]:
    """The times of a schedule are computed only if it may have a run within these days."""
    end = now + days * DAY
    near = (one for one in schedules if may_run_by(one, end) and schedule_problem(one) is None)
    entries = _entries(coming_runs(near, now, end, OFTEN * days + 1, first_of_more=True), days)
    return sorted(entries, key=lambda entry: (entry.at, entry.coming.schedule_id))


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
