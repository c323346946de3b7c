"""Batches on Redis: jobs that were added together share entries of indexes and lines, as if each stood alone."""

from __future__ import annotations

import pytest

from rota.model.outcome import GivenBack
from rota.model.settle import cancel, retry_by_hand, settle
from rota.model.state import State
from rota.store.contract import Exchange, JobFilter, Retention
from rota.testing.store_suite.builders import MINUTE, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    cancel_waiting,
    claim,
    fire_due,
    ids,
    queue_info,
    read,
    settle_job,
    succeed,
)
from stores.redis_stage import *  # noqa: F403 - its fixtures
from stores.test_redis_sheaves import ended

MINE = JobFilter(task="mine")


def added(store, number, task="mine", **fields):
    return add(store, *[a_job(task=task, **fields) for _ in range(number)])


def key(store, name):
    return f"{{{store.namespace}}}:{name}"


def batches(store, raw):
    return raw.hlen(key(store, "batch"))


def packed_size(store, raw):
    return sum(map(len, raw.hvals(key(store, "batch"))))


def traces(store, raw):
    """What is left of tasks' indexes."""
    return [name for name in raw.keys(key(store, "*")) if b":task:" in name or b":batch" in name]


def remove(store, gone):
    store.change_jobs([cancel(job, T0, "not needed") for job in store.get_jobs(gone)], now=T0)
    assert store.delete_jobs(gone) == gone


def test_jobs_that_were_added_together_are_one_entry(store, raw):
    made = added(store, 100)
    assert batches(store, raw) == 1
    assert raw.zcard(key(store, "task:mine")) == 1
    assert ids(all_jobs(store, MINE)) == made[::-1]


def test_a_few_stand_alone(store, raw):
    made = added(store, 5)
    assert batches(store, raw) == 0
    assert ids(all_jobs(store, MINE)) == made[::-1]


def test_every_task_of_a_batch_has_its_own_entry(store, raw):
    made = add(store, *[a_job(task=("mine", "yours", "rare")[(n % 3) if n < 9 else n % 2]) for n in range(60)])
    assert batches(store, raw) == 2
    assert raw.zcard(key(store, "task:rare")) == 3
    assert ids(all_jobs(store)) == made[::-1]
    assert all(job.task == "mine" for job in all_jobs(store, MINE))


def test_jobs_of_every_kind_stand_in_a_batch(store, raw):
    kinds = [{}, {"key": "k"}, {"delay": MINUTE}, {"queue": "other"}, {"priority": 3}, {"schedule_id": "tick"}]
    made = add(store, *[a_job(task="mine", **kinds[n % 6] if n < 6 else {}) for n in range(30)])
    assert batches(store, raw) == 1
    assert ids(all_jobs(store, MINE)) == made[::-1]
    remove(store, made)
    assert traces(store, raw) == []


def test_more_than_a_batch_may_have_stand_alone(store, raw):
    made = added(store, 1_100)
    assert batches(store, raw) == 0
    assert ids(all_jobs(store, MINE)) == made[::-1]


@pytest.mark.parametrize("limit", [1, 9, 50, 1_000])
def test_pages_go_through_batches_both_ways(store, limit):
    made = []
    for _ in range(4):
        made += [*added(store, 30), add_job(store, task="mine"), *added(store, 20, "yours")]
    remove(store, made[10:25])
    left = [job_id for job_id in made if job_id not in made[10:25]]
    assert ids(all_jobs(store, page=limit)) == left[::-1]
    shown, cursor = [], None
    while True:
        page = store.dump("jobs", cursor=cursor, limit=limit)
        shown += ids(page.items)
        cursor = page.cursor
        if cursor is None:
            break
    assert shown == left


def test_a_batch_goes_with_the_last_of_its_jobs(store, raw):
    made = [added(store, 40), added(store, 40)]
    remove(store, made[0])
    assert batches(store, raw) == 1
    remove(store, made[1][:39])
    assert raw.hvals(key(store, "batch:left")) == [b"1"]
    assert raw.hget(key(store, "batch:jobs"), "mine") == b"1"
    remove(store, made[1][39:])
    assert traces(store, raw) == []


def test_a_batch_shrinks_as_its_jobs_go(store, raw):
    made = added(store, 100)
    sizes = [packed_size(store, raw)]
    for start in range(0, 100, 10):
        remove(store, made[start : start + 10])
        sizes.append(packed_size(store, raw))
        assert ids(all_jobs(store, MINE)) == made[: start + 9 : -1]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[5] < sizes[0] * 2 / 3
    assert sizes[-2] < sizes[0] / 5


def test_what_is_removed_as_it_ends_leaves_its_batch(store, raw):
    added(store, 40)
    for job in claim(store, 39):
        assert succeed(store, job, keep=False) == []
    assert raw.hvals(key(store, "batch:left")) == [b"1"]
    succeed(store, claim(store)[0], keep=False)
    assert traces(store, raw) == []


def test_what_is_pruned_leaves_its_batch(store, raw):
    made = added(store, 40)
    jobs = claim(store, 40)
    assert store.exchange(Exchange(holder=WORKER, settled=ended(jobs[::2], T0)), now=T0).refused == []
    assert store.exchange(Exchange(holder=WORKER, settled=ended(jobs[1::2], T0 + MINUTE)), now=T0).refused == []
    kept = Retention(succeeded_for=MINUTE)
    assert store.prune(kept, 99, now=T0 + MINUTE).jobs == 20
    assert ids(all_jobs(store, MINE)) == made[::-2]
    assert store.prune(kept, 99, now=T0 + 2 * MINUTE).jobs == 20
    assert traces(store, raw) == []


def test_one_that_comes_again_keeps_its_former_batch_no_longer(store, raw):
    made = added(store, 20)
    remove(store, made[5:6])
    add(store, a_job(id=made[5], task="mine"))
    assert ids(all_jobs(store, MINE)) == [made[5], *made[:5:-1], *made[4::-1]]
    remove(store, [*made[:5], *made[6:]])
    assert batches(store, raw) == 0
    assert ids(all_jobs(store, MINE)) == [made[5]]


def test_a_spoilt_job_is_shown_with_the_others(store, raw):
    made = added(store, 20)
    record = raw.hget(key(store, "job"), made[7])
    raw.hset(key(store, "job"), made[7], b"nonsense")
    shown = all_jobs(store)
    assert ids(shown) == made[::-1]
    assert shown[12].state is State.FAILED
    raw.hset(key(store, "job"), made[7], record)


@pytest.mark.parametrize("wrong", [-15, 3])
def test_a_number_that_is_wrong_hides_nothing_and_leaves_nothing(store, raw, wrong):
    made = added(store, 20)
    (name,) = raw.hkeys(key(store, "batch"))
    raw.hincrby(key(store, "batch:left"), name, wrong)
    for job_id in made:
        remove(store, [job_id])
        assert ids(all_jobs(store, MINE)) == made[: made.index(job_id) : -1]
    assert traces(store, raw) == []


def test_a_list_takes_the_smaller_index_by_the_number_of_jobs(store, raw):
    """The task has three entries and 1,500 jobs: its queue has fewer."""
    for _ in range(3):
        added(store, 500)
    few = added(store, 30, queue="aside")
    calls = raw.info("commandstats")["cmdstat_hmget"]["calls"]
    assert ids(store.list_jobs(JobFilter(task="mine", queue="aside"), limit=30).items) == few[::-1]
    assert raw.info("commandstats")["cmdstat_hmget"]["calls"] - calls < 10


def test_schedules_that_fire_together_make_a_batch(store, raw):
    for number in range(20):
        add_schedule(store, f"tick{number}", trigger="every 1m")
    assert len(fire_due(store, now=T0 + MINUTE)) == 20
    assert batches(store, raw) == 1
    made = all_jobs(store)
    assert len(made) == 20
    remove(store, ids(made))
    assert traces(store, raw) == []


class TestLines:
    """Jobs that are ready stand in line in sheaves, and are taken as if each stood there alone."""

    def test_they_share_entries_of_a_line(self, store, raw):
        made = added(store, 120)
        assert raw.zcard(key(store, "ready:default:0")) == raw.hlen(key(store, "line")) == 3
        assert ids(all_jobs(store, JobFilter(states=(State.QUEUED,)))) == made[::-1]
        assert ids(claim(store, 200)) == made
        assert raw.exists(key(store, "line"), key(store, "ready:default:0"), key(store, "priorities:default")) == 0

    @pytest.mark.parametrize("want", [1, 3, 13, 20, 50, 70, 100, 500])
    def test_they_are_taken_in_order_however_many_at_a_time(self, store, want):
        made = [*added(store, 70), add_job(store), *added(store, 30, "yours"), *added(store, 5), *added(store, 60)]
        taken = []
        while some := ids(claim(store, want)):
            assert len(some) == min(want, len(made) - len(taken))
            taken += some
        assert taken == made

    @pytest.mark.parametrize("want", [1, 7, 40, 200])
    def test_those_of_several_queues_are_taken_in_one_order(self, store, want):
        made = []
        for queue in ("a", "b", "a"):
            made += [*added(store, 40, queue=queue), add_job(store, queue="b")]
        made += add(store, *[a_job(queue="ab"[n % 2]) for n in range(60)])
        taken = []
        while some := ids(claim(store, want, queues=("a", "b"))):
            taken += some
        assert taken == made

    def test_a_higher_priority_comes_first(self, store):
        made = add(store, *[a_job(priority=n % 2) for n in range(80)])
        assert ids(claim(store, 60)) == [*made[1::2], *made[:40:2]]

    @pytest.mark.parametrize("first", [0, 10, 30, 45])
    def test_one_that_is_due_later_stands_at_its_place(self, store, first):
        made = add(store, *[a_job(delay=MINUTE if n == 40 else 0) for n in range(80)])
        at_once = [job_id for job_id in made if job_id != made[40]]
        taken = ids(claim(store, first)) if first else []
        assert taken == at_once[:first]
        rest = [job_id for job_id in made if job_id not in taken]
        assert ids(all_jobs(store, JobFilter(states=(State.QUEUED, State.SCHEDULED)), page=7)) == rest[::-1]
        assert ids(claim(store, 100, now=T0 + MINUTE)) == rest

    def test_one_that_was_given_back_is_the_first_again(self, store):
        made = added(store, 80)
        jobs = claim(store, 30)
        assert settle_job(store, jobs[7], GivenBack()) == []
        assert ids(claim(store, 60)) == [made[7], *made[30:]]

    def test_one_that_is_cancelled_is_not_taken_until_it_is_retried_at_its_place(self, store):
        made = added(store, 80)
        for job_id in (made[20], made[60]):
            assert cancel_waiting(store, job_id) == []
        assert ids(claim(store, 30)) == [*made[:20], *made[21:31]]
        store.change_jobs([retry_by_hand(read(store, made[60]), T0, "again")], now=T0)
        assert ids(claim(store, 30)) == made[31:61]
        store.change_jobs([retry_by_hand(read(store, made[20]), T0, "again")], now=T0)
        assert ids(claim(store, 30)) == [made[20], *made[61:]]

    def test_one_that_never_stood_in_line_comes_to_its_place_by_hand(self, store):
        made = add(store, *[a_job(delay=MINUTE if n == 40 else 0) for n in range(80)])
        assert cancel_waiting(store, made[40]) == []
        now = T0 + MINUTE  # before its time it would wait for that
        store.change_jobs([retry_by_hand(read(store, made[40]), now, "at once")], now=now)
        assert ids(claim(store, 100, now=now)) == made

    def test_the_first_of_a_line_tells_since_when_it_waits(self, store):
        add(store, *[a_job() for _ in range(50)], now=T0)
        assert queue_info(store).oldest_at == T0
        claim(store, 20)
        assert queue_info(store).oldest_at == T0

    def test_jobs_that_a_settle_gives_back_stand_among_those_that_are_left(self, store):
        """Half of what was taken, each the neighbour of one that is kept."""
        made = added(store, 100)
        jobs = claim(store, 60)
        back = [settle(job, GivenBack(), a_policy(0), T0, 0.0) for job in jobs[::2]]
        assert store.exchange(Exchange(holder=WORKER, settled=back), now=T0).refused == []
        assert ids(claim(store, 100)) == [*made[:60:2], *made[60:]]
