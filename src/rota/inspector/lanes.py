"""Shows the agenda as lanes: the outcomes of a schedule's times in a window, its times to come, and the load of jobs.

Only the lanes that are shown read the ledger. The load of all schedules is computed from their rules and from how long
their last runs took, for so many runs at most; the page states if there are more.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.errors import RotaError
from rota.inspector.coming import TOLERANCE
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.occurrences import coming_runs
from rota.inspector.schedule_state import schedule_problem
from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LARGEST_PAGE, JobFilter, LedgerSpan
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.inspector.occurrences import Coming
    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import Store

HOUR = 3_600 * SECOND
STEPS = 336  # of the load's chart: half an hour each in a week
MOST_RUNS = 20_000  # the load is computed from at most so many
MOST_FAILED = 50  # failures of a schedule that runs often, marked in its lane
LAST_OF_OFTEN = 100  # of its last times, those that are read for other exceptions
KEPT_SERIES = 24 * HOUR
SHORTEST_RUN = SECOND  # a run whose length is not known yet
_TONES = {"succeeded": "ok", "failed": "bad", "running": "run"}
_OPEN = {State.QUEUED.value, State.SCHEDULED.value, State.HELD.value}


class Window(NamedTuple):
    """start <= t < end, as seen now."""

    start: int
    end: int
    now: int

    @property
    def hours(self) -> int:
        return max(1, (self.end - self.start) // HOUR)

    @property
    def coming_from(self) -> int:
        return min(self.end, max(self.start, self.now))


class Bar(NamedTuple):
    """A time of a schedule, or a range of times that share an outcome."""

    tone: str  # ok, bad, run, late, skip or next
    at: int
    through: int


class Lane(Struct, frozen=True, kw_only=True):
    """One schedule in a window."""

    schedule: Schedule
    state: str
    sentence: str
    problem: str | None
    usual: int  # how long a run takes, in microseconds; 0: not known
    is_often: bool  # oftener than once an hour: a band, with the exceptions as bars
    bars: list[Bar]
    counts: dict[str, int]  # times by tone; of one that runs often, the exceptions alone
    is_uncounted: bool  # successes lie in the window that were not counted: it runs often
    coming: int  # how many are to come within the window
    next_run: datetime | None  # of the window, by the schedule's own clock


class Load(Struct, frozen=True, kw_only=True):
    """How many jobs run at once, step by step."""

    step: int  # microseconds
    past: list[float]  # the mean, as far as minutes are kept; only without a filter
    coming: list[float]
    peak: int
    peak_at: int | None  # the first instant of the highest step to come
    slots: int  # jobs that live workers run at once
    counted: int  # schedules whose runs are in it
    is_partial: bool  # there are more runs than were computed


def read_lanes(store: Store, schedules: Sequence[Schedule], window: Window) -> list[Lane]:
    """One lane for each, from one reading of the ledger."""
    spans = [_span(schedule, window) for schedule in schedules] if window.start < window.now else []
    entries = [page.items for page in store.list_many_occurrences(spans, limit=LARGEST_PAGE)] or [[]] * len(schedules)
    return [_read_lane(store, one, some, window) for one, some in zip(schedules, entries, strict=True)]


def _read_lane(store: Store, schedule: Schedule, entries: Sequence[Occurrence], window: Window) -> Lane:
    known = KnownSchedule(schedule, window.now)
    usual = schedule.last.duration or 0
    number = _number(schedule, window) if known.problem is None else 0
    is_often = number > window.hours
    bars = [_bar(entry, usual, window.now) for entry in entries]
    failed = _failed(store, schedule, window, usual) if is_often and window.start < window.now else []
    if is_often:
        bars = [*(bar for bar in bars if bar.tone not in {"ok", "bad", "next"}), *failed]
    coming = _coming(schedule, window, number) if known.problem is None else None
    counts = Counter(bar.tone for bar in bars if bar.tone != "next")
    if not is_often and coming is not None:
        begun = {bar.at for bar in bars}
        runs = [at for at in coming.starts if at not in begun]
        bars = [bar for bar in bars if bar.tone != "next"] + [Bar("next", at, at + usual) for at in runs]
    if known.state == "paused" and not is_often:
        bars += [Bar("skip", at, at + usual) for at in _silent(schedule, window)]
    return Lane(
        schedule=schedule,
        state=known.state,
        sentence=known.sentence,
        problem=known.problem,
        usual=usual,
        is_often=is_often,
        bars=bars,
        counts=dict(counts),
        is_uncounted=is_often and window.start <= (schedule.last.success_at or 0) and window.start < window.now,
        coming=coming.count if coming else 0,
        next_run=coming.first if coming else None,
    )


def read_load(store: Store, schedules: Iterable[Schedule], window: Window, queue: str | None, *, is_all: bool) -> Load:
    """The expected number of jobs at once. Schedules that run oftener than hourly count with their mean."""
    step = max(1, (window.end - window.start) // STEPS)
    spans: list[tuple[int, int]] = []
    base, counted, is_partial = 0.0, 0, False
    for schedule in schedules:
        if len(spans) >= MOST_RUNS:
            is_partial = True
            break
        coming = _coming(schedule, window, _number(schedule, window)) if window.end > window.now else None
        if coming is None:
            continue
        counted += 1
        usual = max(schedule.last.duration or 0, SHORTEST_RUN)
        if coming.count > window.hours:
            base += coming.count * usual / (window.end - window.coming_from)
        else:
            spans += [(at, at + usual) for at in coming.starts]
    levels = at_once(spans, window, step)
    first = (window.coming_from - window.start) // step
    levels = [level + base if place >= first and window.end > window.now else 0.0 for place, level in enumerate(levels)]
    top = max(levels, default=0.0)
    return Load(
        step=step,
        past=_past(store, window, step) if is_all else [],
        coming=levels,
        peak=max(1, round(top)) if top > 0 else 0,  # short runs come to less than one at a time on average
        peak_at=_first_at(spans, window, step, levels.index(top)) if top > 0 else None,
        slots=_slots(store, queue),
        counted=counted,
        is_partial=is_partial,
    )


def at_once(spans: list[tuple[int, int]], window: Window, step: int) -> list[float]:
    """The most spans that are open at one instant of each step."""
    levels = [0.0] * STEPS
    begins, ends = Counter(begin for begin, _ in spans), Counter(end for _, end in spans)  # many have the same instant
    level, place = 0, 0
    for at in sorted(begins.keys() | ends.keys()):
        here = min(STEPS, max(0, (at - window.start) // step))
        for passed in range(place + 1, min(here + 1, STEPS)):
            levels[passed] = max(levels[passed], level)
        place = max(place, here)
        level += begins[at] - ends[at]
        if here < STEPS:
            levels[here] = max(levels[here], level)
    return levels


def _first_at(spans: list[tuple[int, int]], window: Window, step: int, place: int) -> int:
    """The instant of a step at which its last run begins: then all of them are open."""
    low = window.start + place * step
    begun = [begin for begin, _ in spans if low <= begin < low + step]
    return max(begun, default=max(low, window.coming_from))


def _number(schedule: Schedule, window: Window) -> int:
    """How many times its rule names in the window."""
    try:
        return schedule.trigger.count_seconds(window.start // SECOND, window.end // SECOND)
    except (RotaError, ValueError, ArithmeticError):  # written by another version, or by hand
        return 0


def _coming(schedule: Schedule, window: Window, number: int) -> Coming | None:
    """The coming runs of a schedule. Its rule names so many times; of one that runs often, the first is enough."""
    most = 1 if number > window.hours else number + 1
    try:
        return next(coming_runs([schedule], window.coming_from - 1, window.end - 1, most), None)
    except (RotaError, ValueError, ArithmeticError):  # written by another version, or by hand
        return None


def _silent(schedule: Schedule, window: Window) -> list[int]:
    """The times that a pause leaves out; the ledger has them once it is over."""
    pause = schedule.silence
    after = max(window.start - 1, schedule.quiet_since)
    end = window.end if pause is None or pause.until is None else min(window.end, pause.until)
    found: list[int] = []
    second = schedule.trigger.next_second(after // SECOND)
    while second is not None and second * SECOND < end and len(found) <= window.hours:
        found.append(second * SECOND)
        second = schedule.trigger.next_second(second)
    return found


def _span(schedule: Schedule, window: Window) -> LedgerSpan:
    """The part of the ledger that a lane shows: of a schedule that runs often, only the last times."""
    end, start, number = min(window.end, window.now + 1), window.start, _number(schedule, window)
    if number > window.hours and schedule_problem(schedule) is None:
        start = max(start, end - LAST_OF_OFTEN * ((window.end - window.start) // number))
    return LedgerSpan(schedule.id, start, end)


def _failed(store: Store, schedule: Schedule, window: Window, usual: int) -> list[Bar]:
    where = JobFilter(schedule_id=schedule.id, states=(State.FAILED,), since=window.start, until=window.end)
    found = store.list_jobs(where, limit=MOST_FAILED).items
    times = [job.fire_at if job.fire_at is not None else job.created_at for job in found]
    return [Bar("bad", at, at + usual) for at in times if window.start <= at < window.end]


def _bar(entry: Occurrence, usual: int, now: int) -> Bar:
    if entry.count > 1:
        return Bar("skip", entry.earliest_at, entry.through_at)
    tone = _TONES.get(entry.outcome, "skip")
    if entry.outcome in _OPEN:
        tone = "late" if entry.through_at < now - TOLERANCE else "next"
    return Bar(tone, entry.through_at, entry.through_at + usual)


def _past(store: Store, window: Window, step: int) -> list[float]:
    levels = [0.0] * STEPS
    start, end = max(window.start, window.now - KEPT_SERIES), min(window.end, window.now)
    for bucket in store.read_series(start, end) if start < end else []:
        place = (bucket.at - window.start) // step
        if 0 <= place < STEPS:
            levels[place] += bucket.ran.total / step
    return levels


def _slots(store: Store, queue: str | None) -> int:
    nodes = live_nodes(store.list_nodes(), store.now())
    return sum(node.concurrency for node in nodes if "worker" in node.roles and (queue is None or queue in node.queues))
