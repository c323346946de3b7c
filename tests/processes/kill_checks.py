"""What must be true when all work is done, whichever processes were killed on the way."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from rota.inspector.reading import all_schedules
from rota.model.jobs.job import State, history_of
from rota.model.jobs.retry import MAX_DEATHS
from rota.model.micros import SECOND, span_of
from rota.store.contract import Retention
from rota.testing.simulation.checks.occurrences import check_ledger, expected_slots
from rota.testing.simulation.history import all_occurrences
from rota.testing.store_suite.checks import check_store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kill_harness import Ground

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Schedule

CLOCKS_DRIFT = 50_000  # microseconds: histories are told by the wall clock, leases by another


def check_all(ground: Ground, *, gone: Iterable[str] = (), may_park: bool = False) -> list[Job]:
    """Nothing lost, nothing doubled, lawful histories, true counters, nothing stuck. `gone`: jobs that were removed."""
    if not ground.store.features.counters_are_exact:
        set_counters_right(ground)
    jobs = check_store(ground.store)
    check_file(ground)
    check_nothing_lost(ground, jobs, set(gone))
    check_runs(ground, jobs)
    for job in jobs:
        check_end(job, may_park=may_park)
        check_leases(job, span_of(ground.lease))
    for schedule in all_schedules(ground.store):
        check_schedule(ground, schedule)
    return jobs


def set_counters_right(ground: Ground) -> None:
    """What upkeep does in time, where a crash may leave counters off: it looks again and again until it is sure.

    A node that ran here has looked already, and looks anew after ten minutes.
    """
    for minute in range(11, 16):
        ground.store.prune(Retention(), 100, now=ground.store.now() + minute * 60 * SECOND)


def check_file(ground: Ground) -> None:
    """Where the store is a file, nothing in it is torn."""
    if ground.place.kind != "sqlite":
        return
    with ground.store._database.read() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def check_nothing_lost(ground: Ground, jobs: list[Job], gone: set[str]) -> None:
    """Every accepted job is there, and each job that ever was has ended once."""
    accepted = set(ground.noted("accepted"))
    present = {job.id for job in jobs}
    assert accepted - present <= gone
    assert [job for job in jobs if job.is_live] == []
    enqueued = accepted | {job.id for job in jobs if job.schedule_id is None}
    fired = sum(schedule.run_count for schedule in all_schedules(ground.store))
    ended = sum(number for queue in ground.store.list_queues() for number in queue.totals.values())
    assert ended == len(enqueued) + fired or not ground.store.features.counters_are_exact


def check_runs(ground: Ground, jobs: list[Job]) -> None:
    """One execution per lease at most; every attempt that ended was one; nobody else's."""
    runs = Counter(ground.runs())
    assert [run for run, number in runs.items() if number > 1] == []
    begun = Counter(job_id for job_id, _ in runs)
    for job in jobs:
        ended = 0 if job.state is State.CANCELLED else job.attempts
        assert ended <= begun[job.id] <= job.lease_no, (job, ground.runs_of(job.id))


def check_end(job: Job, *, may_park: bool) -> None:
    """It did what its task does; dead workers spent no retry."""
    if may_park and job.state is State.FAILED:
        assert job.deaths == MAX_DEATHS, job
        return
    assert job.state in {State.SUCCEEDED, State.CANCELLED}, job
    if job.state is State.SUCCEEDED:
        assert (job.attempts, job.failures) == ((3, 2) if job.task == "flaky" else (1, 0)), job
    else:
        assert job.lease_no == 0, job


def check_leases(job: Job, lease_for: int) -> None:
    """A lease ends before the next begins, and is taken away only when it has run out."""
    lines = history_of(job)
    ended_at = 0
    for begin, end in pairwise(lines):
        if begin.state is not State.RUNNING:
            continue
        assert begin.at >= ended_at, lines
        ended_at = end.at
        if "worker lost" in end.reason:
            assert end.at - begin.at >= lease_for - CLOCKS_DRIFT, lines


def check_schedule(ground: Ground, schedule: Schedule) -> None:
    """Each expected time has one record: a job, or its place in a range."""
    lines = list(all_occurrences(ground.store, schedule.id))
    for before, after in pairwise(lines):
        assert before.through_at <= after.after_at, (before, after)
    if schedule.generation == 1:
        slots = expected_slots(schedule, schedule.created_at, schedule.fired_through)
        assert check_ledger(schedule, slots, lines, step=0) == []
        assert schedule.pause or slots == expected_slots(schedule, schedule.created_at, schedule.spec.end)
