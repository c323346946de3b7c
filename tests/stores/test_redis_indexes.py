"""The indexes of the Redis store: many jobs are claimed, listed and pruned in order, and deleted ones leave no key."""

from __future__ import annotations

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Returned, Succeeded
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, JobFilter, Retention
from rota.testing.store_suite.builders import MINUTE, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.steps import add, add_job, all_jobs, claim, ids
from stores.redis_stage import *  # noqa: F403 - its fixtures

DONE = JobFilter(states=(State.SUCCEEDED,))


def added(store, number, **fields):
    return add(store, *[a_job(**fields) for _ in range(number)])


def succeeded(store, number, now=T0):
    """So many jobs that ended together; their ids."""
    add(store, *[a_job() for _ in range(number)], now=now)
    jobs = claim(store, number, now=now)
    changes = [settle(job, Succeeded(b""), a_policy(0), now, 0.0) for job in jobs]
    assert store.exchange(Exchange(holder=WORKER, settled=changes), now=now).refused == []
    return ids(jobs)


def test_a_job_that_one_index_has_is_not_looked_for_in_the_others(store, raw):
    for queue, task, number in (("a", "rare", 5), ("b", "often", 20), ("c", "often", 20)):
        added(store, number, queue=queue, task=task)
        ends = [settle(job, Succeeded(b""), a_policy(0), T0, 0.0) for job in claim(store, number, queues=(queue,))]
        store.exchange(Exchange(holder=WORKER, settled=ends), now=T0)
    raw.config_resetstat()
    assert store.count_jobs(JobFilter(task="rare", states=(State.SUCCEEDED,))) == 5
    assert raw.info("commandstats")["cmdstat_zmscore"]["calls"] == 1


@pytest.mark.parametrize("want", [1, 7, 40, 200])
def test_jobs_of_several_queues_are_claimed_in_one_order(store, want):
    made = []
    for queue in ("a", "b", "a"):
        made += [*added(store, 40, queue=queue), add_job(store, queue="b")]
    made += add(store, *[a_job(queue="ab"[n % 2]) for n in range(60)])
    taken = []
    while some := ids(claim(store, want, queues=("a", "b"))):
        taken += some
    assert taken == made


def test_jobs_that_a_settle_returns_keep_their_positions(store):
    made = added(store, 100)
    jobs = claim(store, 60)
    returned = [settle(job, Returned(), a_policy(0), T0, 0.0) for job in jobs[::2]]
    assert store.exchange(Exchange(holder=WORKER, settled=returned), now=T0).refused == []
    assert ids(claim(store, 100)) == [*made[:60:2], *made[60:]]


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_pages_go_through_several_tasks_in_one_order(store, limit):
    made = add(store, *[a_job(task=f"shop.{'abc'[n % 3]}") for n in range(40)])
    for task in ("shop.*", None):
        assert ids(all_jobs(store, JobFilter(task=task), page=limit)) == made[::-1]


def test_more_than_one_window_is_pruned_in_order(store):
    known = [job_id for n in range(30) for job_id in succeeded(store, 20, T0 + n)]
    assert store.prune(Retention(succeeded_for=MINUTE), 130, now=T0 + 2 * MINUTE).jobs == 130
    assert ids(all_jobs(store, DONE)) == known[:129:-1]


def test_pruned_jobs_leave_no_key(store, raw):
    succeeded(store, 50)
    assert store.prune(Retention(succeeded_for=0), 99, now=T0 + 8 * MINUTE).jobs == 50
    left = {key.decode().partition("}:")[2] for key in raw.keys(f"{{{store.namespace}}}:*")}
    minutes = {"series", f"series:{T0 // MINUTE}"}  # what happened in a minute is kept for longer
    assert left == {"meta", "seq", "count", "tasks", "hours:first", "hours:last"} | minutes


@pytest.fixture
def calls(store, monkeypatch):
    """The scripts that are called."""
    called, call = [], store._writer.connection.call

    def counted(name, **options):
        called.append(name)
        return call(name, **options)

    monkeypatch.setattr(store._writer.connection, "call", counted)
    return called


@pytest.mark.parametrize("waiting", [0, 3])
def test_few_ready_jobs_of_a_task_are_found_without_a_look_at_its_ended_ones(store, calls, waiting):
    for _ in range(6):
        succeeded(store, 1_000)  # of the same task
    for _ in range(7):
        added(store, 1_000, task="another", queue="line")
    made = added(store, waiting)
    where = JobFilter(states=(State.QUEUED,), task=a_job().task)
    calls.clear()
    assert ids(store.list_jobs(where).items) == made[::-1]
    assert store.count_jobs(where) == waiting
    assert store.count_jobs(JobFilter(states=(State.QUEUED,), task=a_job().task, since=T0)) == waiting
    assert [name for name in calls if name in {"list", "count"}] == ["list", "count", "count"]


def test_running_jobs_of_a_task_are_found_wherever_they_are(store):
    first, *_ = added(store, 3, task="often")
    (job,) = claim(store, 1)
    added(store, 3, task="another")
    assert job.id == first
    for states in ((State.RUNNING,), (State.RUNNING, State.HELD), (State.RUNNING, State.FAILED)):
        where = JobFilter(states=states, task="often")
        assert ids(store.list_jobs(where).items) == [first]
        assert store.count_jobs(where) == 1
