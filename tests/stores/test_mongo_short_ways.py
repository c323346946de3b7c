"""The short ways of the MongoDB store: few commands for what is asked most often, and nobody is forgotten for it."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from mongo_servers import emptied, standalone_url  # noqa: F401
from pymongo import MongoClient

from rota.errors import StoreMoved
from rota.model.micros import SECOND
from rota.model.outcome import Succeeded
from rota.model.retry import RetryPolicy
from rota.model.settle import cancel, settle
from rota.model.state import State
from rota.store.contract import Exchange, JobFilter, Seal
from rota.store.mongo.claiming import DUE_AT_ONCE
from rota.store.mongo.desk import SOON
from rota.store.mongo.wire import Driver
from rota.testing.store_suite.builders import T0, WORKER, a_job
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add, add_job, claim, history, ids, read


@pytest.fixture
def make_store(standalone_url):  # noqa: F811
    return emptied(standalone_url)


@pytest.fixture
def store(make_store):
    with opened(make_store) as store:
        yield store


def documents(store):
    return store._connection.space


def end(job):
    return settle(job, Succeeded(None), RetryPolicy(), T0, 0.0)


def test_a_plain_job_is_one_write_that_is_waited_for(store):
    add_job(store)
    before = _commands(store)
    add_job(store)
    assert _commands(store) - before == {"insert": 2, "update": 1}  # the job and a notification; its count


def test_an_exchange_is_two_round_trips(store):
    add(store, *[a_job() for _ in range(6)])
    claimed = claim(store, 3)
    asked = count_asked(store)
    answer = store.exchange(Exchange(holder=WORKER, settled=[end(job) for job in claimed], want=3), now=T0)
    assert (len(answer.claimed), answer.refused, asked) == (3, [], [3, 1])


def count_asked(store):
    """How many commands each message has that an answer is waited for."""
    asked: list[int] = []
    wire = store._connection.wire
    ask = wire.ask
    wire.ask = lambda *commands, **others: (asked.append(len(commands)), ask(*commands, **others))[1]
    return asked


def test_a_job_whose_time_has_come_is_claimed_in_two_round_trips(store):
    job_id, later = (add_job(store, delay=seconds * SECOND) for seconds in (10, 20))
    asked = count_asked(store)
    answer = store.exchange(Exchange(holder=WORKER, want=3), now=T0 + 10 * SECOND)
    assert (ids(answer.claimed), answer.next_due_at, asked) == ([job_id], T0 + 20 * SECOND, [1, 1])
    assert history(store, job_id) == [State.SCHEDULED, State.QUEUED, State.RUNNING]
    assert history(store, later) == [State.SCHEDULED]


def test_due_and_ready_jobs_are_claimed_in_one_order(store):
    due = add_job(store, delay=SECOND, priority=5)
    ready = [add_job(store, priority=number) for number in (9, 5, 1)]
    asked = count_asked(store)
    assert ids(claim(store, 9, now=T0 + SECOND)) == [ready[0], due, *ready[1:]]
    assert len(asked) == 2


@pytest.mark.parametrize(("number", "want"), [(DUE_AT_ONCE, 9), (DUE_AT_ONCE + 3, 99), (2, 1)])
def test_where_there_may_be_more_they_are_made_ready_first(store, number, want):
    jobs = [add_job(store, delay=SECOND, priority=-number) for number in range(number)]
    assert ids(claim(store, want, now=T0 + SECOND)) == jobs[:want]


def test_a_due_job_that_somebody_else_has_taken_meanwhile_is_counted_once(store, make_store):
    mine, theirs = add_job(store, delay=SECOND), add_job(store, delay=SECOND)
    wire, update = store._connection.wire, store._connection.wire.update

    def meanwhile(*args, **others):
        wire.update = update
        with opened(make_store) as other:
            other.change_jobs([cancel(read(other, theirs), T0 + SECOND, "not needed")], now=T0 + SECOND)
        return update(*args, **others)

    wire.update = meanwhile
    assert ids(claim(store, 9, now=T0 + SECOND)) == [mine]
    assert read(store, theirs).state is State.CANCELLED
    check_store(store)


def test_a_due_job_that_cannot_be_read_is_parked_and_the_others_run(store):
    odd, sound = add_job(store, delay=SECOND), add_job(store, delay=SECOND)
    documents(store).jobs.update_one({"_id": odd}, {"$set": {"payload": "text"}})
    assert ids(claim(store, 9, now=T0 + SECOND)) == [sound]
    assert read(store, odd).state is State.FAILED


def test_the_gate_is_open_when_a_job_is_due_soon(store):
    add_job(store, delay=SECOND)
    store.close()
    store.open()
    assert claim(store, now=T0 + SECOND - 10 * SOON) == []
    assert not store._head.gate.is_open
    assert claim(store, now=T0 + SECOND - SOON) == []
    assert store._head.gate.is_open


def test_a_report_that_comes_twice_leaves_no_resumed_queue_unseen(store, make_store):
    job = add_job(store)
    store.pause_queue("slow", paused=True)
    (job,) = claim(store, 1, queues=("default", "slow"))
    with opened(make_store) as other:
        other.pause_queue("slow", paused=False)
        waiting = add_job(other, queue="slow")
    ask = Exchange(holder=WORKER, settled=[end(job), end(job)], want=1, queues=("default", "slow"))
    assert ids(store.exchange(ask, now=T0).claimed) == [waiting]


def test_jobs_that_are_there_already_are_counted_once(store):
    there, fresh = a_job(), a_job()
    add(store, there)
    answers = store.add_jobs([there, fresh], now=T0)
    assert [(answer.id, answer.existed) for answer in answers] == [(there.id, True), (fresh.id, False)]
    check_store(store)


def test_a_handle_that_is_idle_does_not_keep_the_store_from_being_sealed(store, make_store):
    with opened(make_store) as other:
        add_job(other)
        begun = time.monotonic()
        store.seal(Seal(target="there"))
        assert time.monotonic() - begun < 5
        with pytest.raises(StoreMoved):
            add_job(other)


def test_a_handle_that_is_closed_keeps_nobody_waiting(store, make_store):
    with opened(make_store) as other:
        add_job(other)
    busy = documents(store).meta.find_one({"_id": "head"})["busy"]
    assert busy == {} or list(busy) == [store._head.gate._token]


def test_places_rise_over_handles(store, make_store):
    with opened(make_store) as other:
        made = [add_job(each) for _ in range(20) for each in (store, other)]
    assert ids(claim(store, 100)) == made


def test_jobs_of_the_first_version_come_first_and_are_listed_last(store):
    new = add_job(store)
    document = documents(store).jobs.find_one({"_id": new})
    documents(store).jobs.insert_one({**document, "_id": "old", "seq": 17})
    pages = [store.list_jobs(JobFilter(), limit=1)]
    pages.append(store.list_jobs(JobFilter(), cursor=pages[0].cursor, limit=1))
    assert [job.id for page in pages for job in page.items] == [new, "old"]
    dumped = store.dump("jobs", limit=1)
    rest = store.dump("jobs", cursor=dumped.cursor, limit=1)
    assert [job.id for job in (*dumped.items, *rest.items)] == ["old", new]
    assert ids(claim(store, 2)) == ["old", new]


def test_threads_of_one_worker_exchange_at_the_same_time(store):
    made = add(store, *[a_job() for _ in range(400)])

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


def test_what_is_told_of_a_seal_holds_for_workers_too(store, make_store):
    add(store, *[a_job() for _ in range(3)])
    with opened(make_store) as other:
        (job,) = claim(other, 1)
        store.seal(Seal(target="there"))
        with pytest.raises(StoreMoved):
            other.exchange(Exchange(holder=WORKER, settled=[end(job)], want=1), now=T0)
        assert other.exchange(Exchange(holder=WORKER, settled=[end(job)]), now=T0).refused == []


def _commands(store):
    """How many commands of each kind the server has worked on, but for those that only look."""
    store.list_queues()  # all that was told is done
    metrics = store._connection.client.admin.command("serverStatus")["metrics"]["commands"]
    return Counter({name: metrics[name]["total"] for name in ("insert", "update", "findAndModify")})


def test_a_driver_that_lends_no_connection_is_used_as_it_is(make_store, monkeypatch):
    monkeypatch.delattr(MongoClient, "_conn_for_writes")
    with opened(make_store) as store:
        assert isinstance(store._connection.wire, Driver)
        job_id = add_job(store)
        (job,) = claim(store)
        assert job.id == job_id
        assert store.exchange(Exchange(holder=WORKER, settled=[end(job)])).refused == []
        check_store(store)
