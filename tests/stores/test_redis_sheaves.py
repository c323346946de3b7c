"""Sheaves on Redis: jobs that succeeded together are listed, removed and pruned one by one, as if each stood alone."""

from __future__ import annotations

import pytest

from rota.model.outcome import Succeeded
from rota.model.retry import RetryPolicy
from rota.model.settle import settle
from rota.model.state import State
from rota.store.contract import Exchange, JobFilter, Retention
from rota.testing.store_suite.builders import LEASE, MINUTE, T0, WORKER, a_job
from rota.testing.store_suite.steps import add, all_jobs, claim, ids, read
from stores.redis_stage import *  # noqa: F403 - its fixtures

DONE = JobFilter(states=(State.SUCCEEDED,))


def ended(jobs, now, results=None):
    given = results or [b""] * len(jobs)
    return [settle(job, Succeeded(result), RetryPolicy(), now, 0.0) for job, result in zip(jobs, given, strict=True)]


def succeed_all(store, jobs, now=T0, results=None):
    ask = Exchange(holder=WORKER, settled=ended(jobs, now, results), lease_for=LEASE)
    return store.exchange(ask, now=now).refused


def succeeded(store, number, now=T0):
    """So many jobs that ended together; their ids."""
    add(store, *[a_job() for _ in range(number)], now=now)
    jobs = claim(store, number, now=now)
    assert succeed_all(store, jobs, now) == []
    return ids(jobs)


def sheaves(store, raw):
    return raw.hlen(f"{{{store.namespace}}}:sheaf")


def test_jobs_that_ended_together_are_one_entry_of_an_index(store, raw):
    succeeded(store, 50)
    assert sheaves(store, raw) == 1
    assert raw.zcard(f"{{{store.namespace}}}:ended:succeeded") == 1
    assert raw.zcard(f"{{{store.namespace}}}:in:default:succeeded") == 1


def test_a_few_stand_alone(store, raw):
    succeeded(store, 2)
    assert sheaves(store, raw) == 0


def test_every_job_is_what_the_model_makes_of_it(store):
    add(store, *[a_job() for _ in range(6)])
    jobs = claim(store, 6)
    results = [b"1", b"1", b"", b"x", None, b"1"]
    assert succeed_all(store, jobs, T0 + 5, results) == []
    for job, result in zip(jobs, results, strict=True):
        seen = read(store, job.id)
        assert (seen.state, seen.result, seen.attempts) == (State.SUCCEEDED, result, 1)
        assert (seen.started_at, seen.finished_at, seen.lease_no) == (job.started_at, T0 + 5, 1)
        assert (seen.holder, seen.run_at, seen.past) == (WORKER, job.run_at, b"")


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
def test_pages_go_through_sheaves_that_lie_across_each_other(store, limit):
    add(store, *[a_job() for _ in range(40)])
    jobs = claim(store, 40)
    for start in range(4):
        assert succeed_all(store, jobs[start::4]) == []
    alone = succeeded(store, 1)
    shown, cursor = [], None
    while True:
        page = store.list_jobs(DONE, cursor=cursor, limit=limit)
        shown += ids(page.items)
        cursor = page.cursor
        if cursor is None:
            break
    assert shown == [*alone, *reversed(ids(jobs))]


def test_a_page_of_many_sheaves_is_whole(store):
    expected = [job_id for _ in range(60) for job_id in succeeded(store, 5)]
    assert ids(all_jobs(store, DONE)) == expected[::-1]


def test_jobs_far_from_each_other_in_line_share_no_sheaf(store, raw):
    add(store, *[a_job() for _ in range(4)])
    first = claim(store, 4)
    for _ in range(2):
        add(store, *[a_job() for _ in range(600)])
    rest = [job for _ in range(12) for job in claim(store, 100)]
    assert succeed_all(store, [*first, *rest]) == []
    assert sheaves(store, raw) == 2
    assert ids(all_jobs(store, DONE)) == ids([*first, *rest])[::-1]


def test_those_that_are_refused_are_left_out(store):
    add(store, *[a_job() for _ in range(8)])
    jobs = claim(store, 8)
    assert succeed_all(store, jobs[:2]) == []
    assert ids(succeed_all(store, jobs)) == ids(jobs[:2])
    assert ids(all_jobs(store, DONE)) == ids(jobs)[::-1]


def test_one_that_is_deleted_is_shown_no_more_and_may_come_again(store):
    known = succeeded(store, 6)
    assert store.delete_jobs([known[2]]) == [known[2]]
    assert ids(all_jobs(store, DONE)) == [job_id for job_id in known[::-1] if job_id != known[2]]
    add(store, a_job(id=known[2]))
    assert ids(all_jobs(store, JobFilter(queue="default"))) == [known[2], *known[:2:-1], *known[1::-1]]


def test_a_prune_takes_the_oldest_of_a_sheaf_and_leaves_the_rest(store, raw):
    add(store, *[a_job() for _ in range(6)])
    jobs = claim(store, 6)
    changes = [change for n, job in enumerate(jobs) for change in ended([job], T0 + (6 - n) * MINUTE)]
    assert store.exchange(Exchange(holder=WORKER, settled=changes), now=T0).refused == []
    late = succeeded(store, 1, T0 + 5 * MINUTE + 1)
    kept = Retention(most_finished=3)
    assert store.prune(kept, 2, now=T0 + 8 * MINUTE).jobs == 2
    assert ids(all_jobs(store, DONE)) == [*late, *ids(jobs[3::-1])]
    assert store.prune(kept, 9, now=T0 + 8 * MINUTE).jobs == 2
    assert ids(all_jobs(store, DONE)) == [*late, *ids(jobs[1::-1])]
    assert store.prune(Retention(succeeded_for=0), 99, now=T0 + 8 * MINUTE).jobs == 3
    left = [key for key in raw.keys(f"{{{store.namespace}}}:*") if b"sheaf" in key or b":in:" in key or b"ended" in key]
    assert left == []


def test_jobs_that_are_deleted_leave_their_sheaf(store, raw):
    known, others = succeeded(store, 6), succeeded(store, 6)
    store.delete_jobs([*known[:3], *others])
    assert sheaves(store, raw) == 1
    assert ids(all_jobs(store, DONE)) == known[:2:-1]
    store.delete_jobs(known)
    assert sheaves(store, raw) == 0


def test_a_prune_forgets_the_sheaf_of_jobs_that_went_without_a_word(store, raw):
    known = succeeded(store, 6)
    sheaf = raw.hgetall(f"{{{store.namespace}}}:sheaf")
    store.delete_jobs(known)
    ((name, packed),) = sheaf.items()  # as where somebody died in between
    raw.hset(f"{{{store.namespace}}}:sheaf", name, packed)
    raw.zadd(f"{{{store.namespace}}}:ended:succeeded", {name: T0})
    raw.zadd(f"{{{store.namespace}}}:in:default:succeeded", {name: 6})
    assert all_jobs(store, DONE) == []
    assert store.prune(Retention(succeeded_for=0), 99, now=T0 + MINUTE).jobs == 0
    assert sheaves(store, raw) == 0


def test_more_than_one_window_is_pruned_in_order(store):
    known = [job_id for n in range(30) for job_id in succeeded(store, 20, T0 + n)]
    assert store.prune(Retention(succeeded_for=MINUTE), 130, now=T0 + 2 * MINUTE).jobs == 130
    assert ids(all_jobs(store, DONE)) == known[:129:-1]
