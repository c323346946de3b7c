"""Every policy beside every other: what each expected time comes to equals what a plain reading of the rules says."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from app.steps import NOON, fire
from rota import every
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.store.contract import Exchange, JobFilter

STEP = 10  # seconds between two expected times
LIMIT = 3  # of catch-up
LOOKS = [10, 20, 30, 40, 155, 160, 170, 180]  # when a scheduler looks; nothing is alive from 40 to 155
LONG_RUN_ENDS = 35  # the first job goes on until then; every other ends before the next look
HORIZON = 180

OVERLAPS = ["skip", "allow", "queue", "cancel"]
CATCHUPS = ["latest", "skip", "all"]
GRACES = [5, 60]
JITTERS = [None, "4s"]
BOUNDS = [{}, {"start": 25}, {"end": 158}, {"start": 15, "end": 100}, {"max_runs": 4}]
SILENCES = {  # how, from when to when: within the outage, at expected times, and beyond its end
    "paused in the outage": ("pause", 72, 103),
    "paused at expected times": ("pause", 70, 100),
    "paused beyond the outage": ("pause", 70, 165),
    "paused until within the outage": ("until", 70, 100),
    "paused until beyond the outage": ("until", 72, 165),
    "disabled in the outage": ("disable", 70, 100),
    "disabled beyond the outage": ("disable", 72, 165),
}


class Reading:
    """The rules, read slowly: one expected time after the other, in seconds."""

    def __init__(self, overlap, catchup, grace, bounds):
        self.overlap, self.catchup, self.grace = overlap, catchup, grace
        self.slots = [
            at for at in range(STEP, HORIZON + 1, STEP) if bounds.get("start", 0) <= at <= bounds.get("end", HORIZON)
        ]
        self.runs_left = bounds.get("max_runs", 1_000)
        self.outcomes: dict[int, str] = {}
        self.live: list[int] = []  # jobs that run or wait, oldest first
        self.held: list[int] = []
        self.long_run: int | None = None

    def silence(self, how, since, until):
        """Nothing is fired from then on; the times within are skipped, the last instant of an announced end not."""
        through = until - 1 if how == "until" else until
        if self.runs_left:
            self.outcomes |= {at: "skipped" for at in self.slots if since <= at <= through}

    def look(self, now):
        due = [at for at in self.slots if at <= now and at not in self.outcomes]
        missed = [at for at in due if at < now - self.grace]
        in_time = [at for at in due if at not in missed]
        caught_up = self._caught_up(missed, in_time)
        for at in [*caught_up, *in_time]:
            if self.runs_left:
                self._run(at, is_chained=at in caught_up and self.catchup == "all")

    def _caught_up(self, missed, in_time):
        if not self.runs_left:
            return []
        if self.catchup == "skip":
            kept, rest = [], "skipped"
        elif self.catchup == "latest":
            kept, rest = ([] if in_time else missed[-1:]), "coalesced"
        else:
            kept, rest = missed[-LIMIT:], "skipped"
        self.outcomes |= {at: rest for at in missed if at not in kept}
        return kept

    def _run(self, at, *, is_chained):
        if self.overlap == "cancel" and not (is_chained or self.held or self.long_run in self.live):
            self.live = []  # what only waits is cancelled at once
        if self.live and self.overlap != "allow":
            waits = is_chained or (self.overlap in {"queue", "cancel"} and not self.held)
            if not waits:
                self.outcomes[at] = "skipped"
                return
            self.held.append(at)
        self.runs_left -= 1
        self.outcomes[at] = "made"
        self.live.append(at)

    def work(self, now):
        """What runs before the next look: all but the first job, which is long, and what is held behind it."""
        if self.long_run is None and self.live:
            self.long_run = self.live[0]
        if now < LONG_RUN_ENDS:
            self.live = [at for at in self.live if at == self.long_run or at in self.held]
        else:
            self.live, self.held = [], []


class Crew:
    """A worker that is led by hand: the first job that it gets is the long one."""

    def __init__(self, app):
        self.store = app.open()
        self.long_run = None

    def work(self, clock, now):
        self._end_long_run(clock, now)
        while self._round(clock):
            pass

    def _end_long_run(self, clock, now):
        if self.long_run is not None and now >= LONG_RUN_ENDS:
            (job,) = self.store.get_jobs([self.long_run.id])
            self._settle([job] if job.state is State.RUNNING else [], clock)
            self.long_run = None

    def _round(self, clock):
        claimed = self.store.exchange(Exchange(holder="crew", want=50, lease_for=3600 * SECOND)).claimed
        if self.long_run is None and claimed and clock.time < NOON + LONG_RUN_ENDS * SECOND:
            self.long_run = claimed.pop(0)
        self._settle(claimed, clock)
        return bool(claimed)

    def _settle(self, jobs, clock):
        changes = [settle(job, Succeeded(), RetryPolicy(), clock.time, 0.0) for job in jobs]
        if changes:
            assert self.store.exchange(Exchange(holder="crew", settled=changes, want=0)).refused == []


def outcomes_of(app):
    """What each expected time came to, by its second, ranges opened up."""
    page = app.open().list_occurrences("grid", NOON, NOON + (HORIZON + 1) * SECOND, limit=200)
    assert page.cursor is None
    found: dict[int, str] = {}
    for line in page.items:
        first = (max(line.after_at, NOON) - NOON) // SECOND // STEP * STEP + STEP
        last = (line.through_at - NOON) // SECOND
        seconds = [last] if line.count == 1 else list(range(first, last + 1, STEP))[-line.count :]
        assert len(seconds) == line.count
        assert not found.keys() & set(seconds), "an expected time has two outcomes"
        found |= dict.fromkeys(seconds, line.outcome if line.outcome in {"skipped", "coalesced"} else "made")
    return found


def put_grid(app, clock, bounds, **policies):
    @app.task(name="grid.noop")
    def noop() -> None: ...

    said = {
        name: clock.now + timedelta(seconds=value) if name != "max_runs" else value for name, value in bounds.items()
    }
    rule = every("10s", start=clock.now)
    app.schedules.put("grid", noop.job(), rule, catchup_limit=LIMIT, **policies, **said)


def turn(app, clock, now, reading, crew):
    """A scheduler looks, then the workers work."""
    clock.time = NOON + now * SECOND
    fire(app)
    clock.skip(4)  # past any jitter
    crew.work(clock, now + 4)
    reading.look(now)
    reading.work(now + 4)


@pytest.mark.parametrize(("overlap", "catchup"), list(product(OVERLAPS, CATCHUPS)))
@pytest.mark.parametrize("grace", GRACES)
@pytest.mark.parametrize("jitter", JITTERS)
@pytest.mark.parametrize("bounds", BOUNDS, ids=lambda bounds: ",".join(bounds) or "unbounded")
def test_each_expected_time_comes_to_what_the_rules_say(app, clock, overlap, catchup, grace, jitter, bounds):
    put_grid(app, clock, bounds, overlap=overlap, catchup=catchup, grace=f"{grace}s", jitter=jitter)
    reading, crew = Reading(overlap, catchup, grace, bounds), Crew(app)
    for now in LOOKS:
        turn(app, clock, now, reading, crew)
    assert outcomes_of(app) == reading.outcomes
    jobs = app.open().list_jobs(JobFilter(schedule_id="grid"), limit=200).items
    assert len(jobs) == sum(outcome == "made" for outcome in reading.outcomes.values())
    moved = {job.run_at - job.fire_at for job in jobs if job.created_at == job.fire_at and job.waits_for is None}
    assert len(moved) <= 1  # stable for one schedule
    assert all(0 <= by < 4 * SECOND for by in moved)


def begin_silence(app, clock, how, until):
    if how == "disable":
        app.schedules.disable("grid")
    else:
        ends_at = clock.now + timedelta(seconds=until - (clock.time - NOON) // SECOND)
        app.schedules.pause("grid", until=ends_at if how == "until" else None)


def end_silence(app, how):
    if how == "disable":
        app.schedules.enable("grid")
    elif how == "pause":
        app.schedules.resume("grid")


@pytest.mark.parametrize("kind", ["memory"])  # the suite has the same silences on every store
@pytest.mark.parametrize(("how", "since", "until"), SILENCES.values(), ids=SILENCES)
@pytest.mark.parametrize(("overlap", "catchup"), list(product(["skip", "queue"], CATCHUPS)))
@pytest.mark.parametrize("grace", GRACES)
@pytest.mark.parametrize("bounds", [{}, {"end": 158}, {"max_runs": 4}], ids=lambda one: ",".join(one) or "unbounded")
def test_a_silence_in_an_outage_skips_what_lies_within_it_and_nothing_else(
    app, clock, how, since, until, overlap, catchup, grace, bounds
):
    """Times that were missed before it, and after it, go by catch-up."""
    put_grid(app, clock, bounds, overlap=overlap, catchup=catchup, grace=f"{grace}s")
    reading, crew = Reading(overlap, catchup, grace, bounds), Crew(app)
    for now in sorted([*LOOKS, since, until]):
        clock.time = NOON + now * SECOND
        if now == since:
            begin_silence(app, clock, how, until)
        elif now == until:
            end_silence(app, how)
            reading.silence(how, since, until)
        elif not since < now < until:
            turn(app, clock, now, reading, crew)
        else:
            fire(app)
    assert outcomes_of(app) == reading.outcomes
