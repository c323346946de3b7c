"""Reads the ledger for pages: the newest entries first, each with the answer of `why` about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rota.errors import RotaError
from rota.inspector.surroundings import around, awaited_by
from rota.model.jobs.job import Job
from rota.model.micros import SECOND
from rota.model.schedules.firing import overlapped_jobs
from rota.model.schedules.occurrence import Occurrence
from rota.model.schedules.schedule import problem_of
from rota.model.schedules.slots import count_open, last_slot
from rota.model.why.schedule import Records, Verdict, expected_after, why
from rota.store.contract import LARGEST_PAGE, LedgerSpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

MOST_TRIES = 24
WIDER = 4


class LedgerEntry(Struct, frozen=True, kw_only=True):
    """One entry of the ledger, its job if that is kept, and the answer about it."""

    occurrence: Occurrence
    verdict: Verdict
    job: Job | None = None
    first_at: int | None = None  # the first of several times, by the rule as it is now


def newest_occurrences(
    store: Store, schedule: Schedule, before: int, most: int, *, tries: int = MOST_TRIES
) -> list[Occurrence]:
    """The last entries before an instant, newest first: at least so many times, if that many are kept.

    The contract lists oldest first, so the span that holds them is guessed by the rule. A rule that was another one
    then makes the guess too short or too long: it is widened or narrowed, `tries` times at most.
    """
    span, too_short, too_long = _span_of(schedule, before, most), 0, None
    found: list[Occurrence] = []
    for _ in range(tries):
        start = max(schedule.created_at, before - span)
        page = store.list_occurrences(schedule.id, start, before, limit=LARGEST_PAGE)
        found = page.items
        if page.cursor is not None:  # more than a page: the newest entries are beyond it
            too_long = span
        elif sum(occurrence.count for occurrence in found) >= most or start <= schedule.created_at:
            break
        else:
            too_short = span
        span = span * WIDER if too_long is None else (too_short + too_long) // 2
    return found[::-1]


def newest_of_many(store: Store, schedules: Sequence[Schedule], before: int, most: int) -> list[list[Occurrence]]:
    """Like newest_occurrences for each schedule with one try: a list of schedules reads its store once."""
    starts = [max(one.created_at, before - _span_of(one, before, most)) for one in schedules]
    spans = [LedgerSpan(one.id, start, before) for one, start in zip(schedules, starts, strict=True)]
    return [page.items[::-1] for page in store.list_many_occurrences(spans, limit=LARGEST_PAGE)]


def _span_of(schedule: Schedule, before: int, most: int) -> int:
    """How far back so many expected times lie, roughly and not too near."""
    end = before // SECOND
    try:
        last = schedule.trigger.second_before(end)
        if problem_of(schedule) is not None or last is None:
            return max(SECOND, before - schedule.created_at)
        span = max(1, end - last) * most
        while schedule.trigger.count_seconds(end - span, end) < most and end - span > schedule.created_at // SECOND:
            span *= WIDER
    except (RotaError, ValueError, ArithmeticError):
        return max(SECOND, before - schedule.created_at)
    return (span + 1) * SECOND


def explained(store: Store, schedule: Schedule, occurrences: Sequence[Occurrence]) -> list[LedgerEntry]:
    """The entries with their jobs and answers; whatever the number of entries, the store is read five times."""
    spec, now = schedule.spec, store.now()
    jobs = _jobs(store, (occurrence.job_id for occurrence in occurrences))
    met = {occurrence.through_at: _met(occurrence, jobs) for occurrence in occurrences}
    others = _jobs(store, (job_id for job_id in met.values() if job_id not in jobs))
    surroundings = around(store, spec.queue, spec.task, now, spec.tz)
    entries = []
    for occurrence in occurrences:
        job, other_id = jobs.get(occurrence.job_id or ""), met[occurrence.through_at] or ""
        records = Records(occurrence=occurrence, job=job, other=others.get(other_id) or jobs.get(other_id))
        verdict = why(schedule, occurrence.through_at, records, surroundings)
        entries.append(
            LedgerEntry(occurrence=occurrence, verdict=verdict, job=job, first_at=_first_of(schedule, occurrence))
        )
    return entries


def overdue(store: Store, schedule: Schedule) -> LedgerEntry | None:
    """The expected times that are not decided yet, as one entry; None if there are none."""
    now = store.now()
    if problem_of(schedule) is not None:
        return None
    last = last_slot(schedule, now)
    if last is None:
        return None
    count = max(1, count_open(schedule, schedule.made_through, last))
    occurrence = Occurrence(
        schedule_id=schedule.id, after_at=schedule.made_through, through_at=last, count=count, outcome="due"
    )
    surroundings = around(store, schedule.spec.queue, schedule.spec.task, now, schedule.spec.tz)
    verdict = why(schedule, last, Records(), surroundings)
    return LedgerEntry(occurrence=occurrence, verdict=verdict, first_at=_first_of(schedule, occurrence))


def open_times(schedule: Schedule, now: int) -> int:
    """How many expected times have passed and are not decided yet."""
    last = last_slot(schedule, now) if problem_of(schedule) is None else None
    return 0 if last is None else count_open(schedule, schedule.made_through, last)


def strip_ends(schedule: Schedule, now: int, occurrences: Sequence[Occurrence], most: int) -> tuple[int, int] | None:
    """The first and the last of the newest `most` times: of the ledger's entries, newest first, and of the times that
    pass while the schedule is silent. None if there are none."""
    groups = [(occurrence.through_at, occurrence.count) for occurrence in occurrences]
    is_silent = schedule.silence is not None or not schedule.is_enabled
    if is_silent and (passed := open_times(schedule, now)) and (last := last_slot(schedule, now)) is not None:
        groups.insert(0, (last, passed))
    left, first = most, None
    for through, count in groups:
        taken = min(left, count)
        left -= taken
        first = _times_before(schedule, through, taken - 1)
        if not left:
            break
    return None if first is None else (first, groups[0][0])


def _times_before(schedule: Schedule, at: int, number: int) -> int:
    """The expected time so many before this one, by the rule as it is now."""
    for _ in range(number):
        try:
            before = schedule.trigger.second_before(at // SECOND)
        except (RotaError, ValueError, ArithmeticError):
            return at
        if before is None:
            return at
        at = before * SECOND
    return at


def _first_of(schedule: Schedule, occurrence: Occurrence) -> int | None:
    return None if occurrence.count == 1 else first_between(schedule, occurrence.after_at, occurrence.through_at)


def first_between(schedule: Schedule, after_at: int, through_at: int) -> int | None:
    """The first expected time in after_at < t <= through_at, by the rule as it is now."""
    first = None if problem_of(schedule) is not None else expected_after(schedule, after_at)
    return first if first is not None and first <= through_at else None


def _met(occurrence: Occurrence, jobs: dict[str, Job]) -> str | None:
    """The job that prevented an occurrence from running, or that it waits for."""
    overlap = overlapped_jobs(occurrence.reason)
    return overlap[0] if overlap is not None else awaited_by(jobs.get(occurrence.job_id or ""))


def _jobs(store: Store, ids: Iterable[str | None]) -> dict[str, Job]:
    wanted = list(dict.fromkeys(job_id for job_id in ids if job_id))
    return {job.id: job for job in store.get_jobs(wanted)} if wanted else {}
