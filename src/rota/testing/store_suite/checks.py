"""Checks what must be true of a store at any moment. Each check reads the store as any caller can."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from rota.model.jobs.job import FINAL, FIRST_STATES, MOVES, State, history_of
from rota.model.jobs.retry import MAX_DEATHS
from rota.testing.store_suite.steps import all_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.jobs.job import Job
    from rota.store.contract import Store


def check_store(store: Store) -> list[Job]:
    """Run every check; return the jobs that it read."""
    jobs = all_jobs(store)
    assert store.recount() == {}
    check_counts(store, jobs)
    check_keys(jobs)
    check_occurrences(jobs)
    for job in jobs:
        check_history(job)
        check_lease(job)
    return jobs


def check_counts(store: Store, jobs: Iterable[Job]) -> None:
    """The counts of the queues are those of a list of the jobs."""
    counted = Counter((job.queue, job.state.value) for job in jobs if job.is_live)
    said = {
        (info.name, state): number
        for info in store.list_queues()
        for state, number in info.counts.items()
        if number and State(state) not in FINAL
    }
    assert said == dict(counted)


def check_history(job: Job) -> None:
    """Each entry is an allowed move from the one before; each claim is one entry with a higher lease number."""
    lines = history_of(job)
    states = [line.state for line in lines]
    assert states[0] in FIRST_STATES, states
    assert states[-1] is job.state, states
    assert all(after in MOVES[before] for before, after in pairwise(states)), states
    assert all(before.at <= after.at for before, after in pairwise(lines)), lines
    leases = [(line.data or {}).get("lease") for line in lines if line.state is State.RUNNING]
    assert leases == list(range(1, job.lease_no + 1)), lines


def check_lease(job: Job) -> None:
    """A running job has one lease, any other none; an ended job has its time."""
    is_running = job.state is State.RUNNING
    assert (job.lease_until is not None) == is_running, job
    assert job.holder is not None or not is_running, job
    assert (job.finished_at is not None) == job.state.is_final, job
    assert job.attempts + job.deaths <= job.lease_no, job
    assert 0 <= job.failures <= job.attempts, job
    assert 0 <= job.deaths <= MAX_DEATHS, job


def check_keys(jobs: Iterable[Job]) -> None:
    """At most one live job has a key, and one a schedule's slot; an ended job has no slot."""
    for taken in (Counter(job.key for job in jobs if job.is_live), Counter(job.slot for job in jobs)):
        assert [name for name, number in taken.items() if name is not None and number > 1] == []
    assert [job.id for job in jobs if job.slot is not None and not job.is_live] == []


def check_occurrences(jobs: Iterable[Job]) -> None:
    """No nominal time of a schedule has two jobs."""
    made = Counter((job.schedule_id, job.fire_at) for job in jobs if job.fire_at is not None)
    assert [occurrence for occurrence, number in made.items() if number > 1] == []
