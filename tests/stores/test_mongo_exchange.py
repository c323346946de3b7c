"""Adding, settling and claiming on MongoDB: few commands for the most frequent verbs, and races with other workers."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from mongo_servers import documents, emptied, replica_set_url, standalone_url  # noqa: F401

from rota import failpoints
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import cancel, settle
from rota.model.micros import SECOND
from rota.store.contract import Exchange
from rota.store.mongo import adding
from rota.store.mongo.exchange import MOST_DUE
from rota.testing.store_suite.builders import T0, WORKER, a_job
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add, add_job, claim, history, ids, read


@pytest.fixture(params=["standalone_url", "replica_set_url"])
def make_store(request):
    return emptied(request.getfixturevalue(request.param))


@pytest.fixture
def store(make_store):
    with opened(make_store) as store:
        yield store


def end(job):
    return settle(job, Succeeded(None), RetryPolicy(), T0, 0.0)


def commands(store):
    """How many commands of each kind the server has worked on."""
    store.list_queues()  # the server has received what was sent before
    metrics = documents(store).database.client.admin.command("serverStatus")["metrics"]["commands"]
    names = ("insert", "update", "findAndModify", "commitTransaction", "aggregate")
    return Counter({name: metrics[name]["total"] for name in names})


def commands_of(store, work):
    before = commands(store)
    work()
    return commands(store) - before - Counter(aggregate=1)  # list_queues counts the running jobs


def test_a_single_job_needs_no_transaction(store, monkeypatch):
    monkeypatch.setattr(adding, "PAUSE", 0.0)
    add_job(store)
    used = commands_of(store, lambda: add_job(store))
    if store._connection.has_transactions:  # token with the count; two notifications, job; token
        assert used == {"findAndModify": 1, "insert": 3, "update": 1}
    else:  # token; job, notification; counter, token
        assert used == {"findAndModify": 1, "insert": 2, "update": 2}


def test_jobs_that_follow_one_another_are_notified_once(store, monkeypatch):
    monkeypatch.setattr(adding, "PAUSE", 600.0)
    add_job(store)
    assert commands_of(store, lambda: [add_job(store) for _ in range(3)])["insert"] == 3 * 2  # job, notification


def test_an_exchange_settles_and_claims_with_three_updates_and_one_read(store):
    add(store, *[a_job() for _ in range(6)])
    ask = Exchange(holder=WORKER, settled=[end(job) for job in claim(store, 3)], want=3)
    answers = []
    used = commands_of(store, lambda: answers.append(store.exchange(ask, now=T0)))
    assert [(len(answer.claimed), answer.refused) for answer in answers] == [(3, [])]
    assert used == {"findAndModify": 1, "aggregate": 1, "update": 4}  # settled, counted, claimed, token


def test_a_job_that_has_the_same_result_already_takes_none_from_another(store):
    add(store, a_job(), a_job(), a_job())
    first, second, third = ids(claim(store, 3))
    documents(store).jobs.update_one({"_id": first}, {"$set": {"result": b"1"}})  # by hand
    settled = [settle(read(store, job), Succeeded(b"1"), RetryPolicy(), T0, 0.0) for job in (first, second)]
    settled.append(settle(read(store, third), Succeeded(b"2"), RetryPolicy(), T0, 0.0))
    store.exchange(Exchange(holder=WORKER, settled=settled[:2]), now=T0)
    store.exchange(Exchange(holder=WORKER, settled=settled[2:]), now=T0)
    assert [read(store, job).result for job in (first, second, third)] == [b"1", b"1", b"2"]


def test_a_due_job_is_claimed_without_being_made_ready_first(store):
    job_id, later = (add_job(store, delay=seconds * SECOND) for seconds in (10, 20))
    answers = []
    ask = Exchange(holder=WORKER, want=3)
    used = commands_of(store, lambda: answers.append(store.exchange(ask, now=T0 + 10 * SECOND)))
    (answer,) = answers
    assert (ids(answer.claimed), answer.next_due_at) == ([job_id], T0 + 20 * SECOND)
    assert used == {"findAndModify": 1, "aggregate": 1, "update": 3}  # claimed, counted, token
    assert history(store, job_id) == [State.SCHEDULED, State.QUEUED, State.RUNNING]
    assert history(store, later) == [State.SCHEDULED]


def test_due_and_ready_jobs_are_claimed_in_one_order(store):
    due = add_job(store, delay=SECOND, priority=5)
    ready = [add_job(store, priority=number) for number in (9, 5, 1)]
    assert ids(claim(store, 9, now=T0 + SECOND)) == [ready[0], due, *ready[1:]]


@pytest.mark.parametrize(("number", "want"), [(MOST_DUE, 9), (MOST_DUE + 3, 99), (2, 1)])
def test_if_there_may_be_more_they_are_made_ready_first(store, number, want):
    jobs = [add_job(store, delay=SECOND, priority=-number) for number in range(number)]
    assert ids(claim(store, want, now=T0 + SECOND)) == jobs[:want]


def test_a_due_job_that_is_cancelled_meanwhile_is_counted_once(store, make_store):
    mine, theirs = add_job(store, delay=SECOND), add_job(store, delay=SECOND)

    def meanwhile(name):
        if name == "exchange.before_commit":
            failpoints.install(None)
            with opened(make_store) as other:
                other.change_jobs([cancel(read(other, theirs), T0 + SECOND, "not needed")], now=T0 + SECOND)

    failpoints.install(meanwhile)
    try:
        assert ids(claim(store, 9, now=T0 + SECOND)) == [mine]
    finally:
        failpoints.install(None)
    assert read(store, theirs).state is State.CANCELLED
    check_store(store)


def test_a_due_job_that_cannot_be_read_fails_and_the_others_run(store):
    odd, sound = add_job(store, delay=SECOND), add_job(store, delay=SECOND)
    documents(store).jobs.update_one({"_id": odd}, {"$set": {"payload": "text"}})
    assert ids(claim(store, 9, now=T0 + SECOND)) == [sound]
    assert read(store, odd).state is State.FAILED


def test_a_queue_that_another_process_resumed_is_seen(store, make_store):
    add_job(store)
    store.pause_queue("slow", paused=True)
    (job,) = claim(store, 1, queues=("default", "slow"))
    with opened(make_store) as other:
        other.pause_queue("slow", paused=False)
        waiting = add_job(other, queue="slow")
    ask = Exchange(holder=WORKER, settled=[end(job), end(job)], want=1, queues=("default", "slow"))
    assert ids(store.exchange(ask, now=T0).claimed) == [waiting]


def test_jobs_that_exist_already_are_counted_once(store):
    existing, fresh = a_job(), a_job()
    add(store, existing)
    answers = store.add_jobs([existing, fresh], now=T0)
    assert [(answer.id, answer.existed) for answer in answers] == [(existing.id, True), (fresh.id, False)]
    check_store(store)


def test_positions_rise_over_handles(store, make_store):
    with opened(make_store) as other:
        made = [add_job(each) for _ in range(20) for each in (store, other)]
    assert ids(claim(store, 100)) == made


def test_threads_of_one_worker_exchange_at_the_same_time(store):
    made = add(store, *[a_job() for _ in range(200)])

    def work(_number):
        seen, settled = [], []
        while True:
            answer = store.exchange(Exchange(holder=WORKER, settled=settled, want=7), now=T0)
            assert answer.refused == []
            if not answer.claimed:
                return seen
            seen += ids(answer.claimed)
            settled = [end(job) for job in answer.claimed]

    with ThreadPoolExecutor(4) as pool:
        seen = [job_id for mine in pool.map(work, range(4)) for job_id in mine]
    assert sorted(seen) == sorted(made)
    assert {job.state for job in check_store(store)} == {State.SUCCEEDED}


@pytest.fixture
def overtaken(make_store, store, monkeypatch):
    """A store whose next claim finds that a rival has just claimed the same four jobs. It skips all that it may."""
    monkeypatch.setattr("rota.store.mongo.exchange.random.randrange", lambda stop: stop - 1)
    with opened(make_store) as rival:

        def overtake(name):
            if name == "exchange.before_commit":
                failpoints.install(None)
                assert len(claim(rival, 4)) == 4

        failpoints.install(overtake)
        yield store
        failpoints.install(None)


def test_a_worker_that_lost_jobs_to_another_claims_those_behind(overtaken):
    made = add(overtaken, *[a_job() for _ in range(16)])
    assert ids(claim(overtaken, 4)) == made[8:12]  # the batch before it is left to the rival
    assert ids(claim(overtaken, 4)) == made[4:8]  # the oldest again, since the last claim was won whole
    assert ids(claim(overtaken, 4)) == made[12:]


def test_a_worker_that_lost_jobs_to_another_claims_the_last_ones(overtaken):
    made = add(overtaken, *[a_job() for _ in range(6)])
    assert ids(claim(overtaken, 4)) == made[4:]
