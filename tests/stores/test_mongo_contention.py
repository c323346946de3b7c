"""MongoDB, where several are at the same documents: transactions of the dead, keys taken over, batches broken off."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import count

import pytest
from mongo_servers import FOLDER, documents, emptied, standalone_url  # noqa: F401
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, OperationFailure, WriteConcernError

from rota import failpoints
from rota.errors import StoreError, StoreUnavailable
from rota.model.jobs.job import State
from rota.model.jobs.outcome import Returned
from rota.model.jobs.settle import cancel, retry_by_hand
from rota.model.schedules.edit import trigger_now
from rota.store.contract import JobFilter
from rota.store.mongo import MongoStore, control
from rota.store.mongo.changing import release_if_free
from rota.store.mongo.faults import translate
from rota.testing.servers.mongo import MongoReplicaSet
from rota.testing.store_suite.builders import MINUTE, T0
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    history,
    ids,
    ledger,
    planned,
    read,
    read_schedule,
    settle_job,
    succeed,
)

DUE = T0 + MINUTE
DIE_WHILE_FIRING = """
import os, sys
from rota import failpoints
from rota.store.mongo import MongoStore
from rota.testing.store_suite.steps import planned

store = MongoStore(sys.argv[1])
store.open()
failpoints.install(lambda name: os.kill(os.getpid(), 9) if name == "fire.before_commit" else None)
store.fire([planned(store, name, now=int(sys.argv[2])) for name in sys.argv[3:]], now=int(sys.argv[2]))
"""


@pytest.fixture
def store(standalone_url):  # noqa: F811
    with opened(emptied(standalone_url)) as handle:
        yield handle


@pytest.fixture
def replica_set():
    """One of its own, which keeps the transactions of the dead for the usual minute."""
    with MongoReplicaSet(FOLDER) as server:
        yield server


def fire_what_is_due(store):
    """One turn of a scheduler: which schedules were fired, and which were refused."""
    due = store.due_schedules(200, now=DUE).schedules
    fired = store.fire([planned(store, schedule.id, now=DUE) for schedule in due], now=DUE) if due else []
    return [one.schedule_id for one in fired if one.is_accepted], [
        one.schedule_id for one in fired if not one.is_accepted
    ]


def test_a_scheduler_killed_in_its_transaction_holds_up_its_own_schedules_and_those_not_for_long(
    replica_set, monkeypatch
):
    monkeypatch.setattr(control, "DEAD_AFTER", 2_000_000)
    store = MongoStore(replica_set.url())
    store.open()
    try:
        for name in "abcdef":
            add_schedule(store, name)
        child = [sys.executable, "-c", DIE_WHILE_FIRING, replica_set.url(), str(DUE), "a", "b"]
        assert subprocess.run(child, check=False).returncode == -9
        assert fire_what_is_due(store) == (["c", "d", "e", "f"], ["a", "b"])
        turn = store.due_schedules(200, now=DUE)
        assert (turn.schedules, turn.next_due_at) == ([], DUE + 1_000_000)  # nobody asks for them without a pause
        deadline, fired = time.monotonic() + 30, []
        while len(fired) < 2:
            assert time.monotonic() < deadline  # long before the server's own limit
            fired += fire_what_is_due(store)[0]
        assert sorted(job.schedule_id for job in all_jobs(store)) == list("abcdef")
        assert store.recount() == {}
    finally:
        store.close()


def test_workers_go_on_though_a_schedule_of_theirs_is_locked(replica_set):
    store = MongoStore(replica_set.url())
    store.open()
    try:
        for name in "ab":
            add_schedule(store, name)
            fire(store, name, now=DUE)
        first, second = claim(store, 2, now=DUE)
        child = [sys.executable, "-c", DIE_WHILE_FIRING, replica_set.url(), str(DUE + MINUTE), "a"]
        assert subprocess.run(child, check=False).returncode == -9
        began_at = time.monotonic()
        succeed(store, first, now=DUE)
        succeed(store, second, now=DUE)
        assert time.monotonic() - began_at < 6
        assert read_schedule(store, "b").last.status == "succeeded"
    finally:
        store.close()


class Crash(Exception):
    """A process that dies between the write that decides and the delivery of what follows."""


def fire_half(store, *, now):
    """A firing by a process that dies before it delivers."""

    def die(name):
        if name == "fire.before_commit":
            raise Crash

    failpoints.install(die)
    try:
        with pytest.raises(Crash):
            fire(store, now=now)
    finally:
        failpoints.install(None)


def test_a_schedule_that_others_keep_firing_is_not_set_aside(store, monkeypatch):
    """Whenever this scheduler has delivered what others left half done, they have fired again."""
    add_schedule(store, overlap="allow")
    instants = (T0 + number * MINUTE for number in count(1))
    fire_half(store, now=next(instants))
    deliver = store._schedules._deliver

    def delivered_and_fired_again(documents):
        if not deliver(documents):
            return False
        fire_half(store, now=next(instants))
        return True

    with monkeypatch.context() as patch:
        patch.setattr(store._schedules, "_deliver", delivered_and_fired_again)
        due = store.due_schedules(9, now=DUE)
    assert due.schedules == []
    assert due.next_due_at is not None
    assert due.next_due_at <= DUE  # to be looked at again, at once
    now = next(instants)
    (again,) = store.due_schedules(9, now=now).schedules
    assert again.problem is None
    fire(store, now=now)
    assert [line.through_at for line in ledger(store)] == list(range(T0 + MINUTE, now + 1, MINUTE))


def test_a_job_made_behind_one_that_took_its_slot_has_waited_from_its_first_line_on(store):
    """The schedule fired between the end of one job and the release of the next."""
    add_schedule(store, "tick", overlap="queue")
    fire(store, "tick", now=DUE)
    running = claim_one(store, now=DUE)
    fire(store, "tick", now=DUE + MINUTE)
    (held,) = [job for job in all_jobs(store) if job.state is State.HELD]
    gone = {"slot": "", "lease_until": ""}
    documents(store).jobs.update_one(
        {"_id": running.id}, {"$set": {"state": "succeeded", "finished_at": DUE}, "$unset": gone}
    )

    def release_first(name: str) -> None:
        if name == "fire.before_commit":
            failpoints.install(None)
            store._steps.run("add", lambda step: release_if_free(step, held, DUE + MINUTE))

    failpoints.install(release_first)
    try:
        fire(store, "tick", now=DUE + 2 * MINUTE)
    finally:
        failpoints.install(None)
    last = all_jobs(store, JobFilter(schedule_id="tick"))[0]
    assert (last.state, last.waits_for) == (State.HELD, held.id)
    succeed(store, claim_one(store, now=DUE + 2 * MINUTE), now=DUE + 2 * MINUTE)
    assert history(store, last.id) == [State.HELD, State.QUEUED]


@pytest.fixture
def taking():
    """Has another job take the key between a decision and the insert of its job; gives that job."""

    def install(store, where, then=lambda: None):
        taken = []

        def take(name: str) -> None:
            if name == where:
                failpoints.install(None)
                taken.append(add_job(store, key="k", queue="other", now=DUE))
                then()

        failpoints.install(take)
        return taken

    yield install
    failpoints.install(None)


def test_a_key_that_is_taken_between_the_decision_and_the_insert_leaves_a_skip(store, taking):
    add_schedule(store, "tick", key="k", overlap="allow")
    taken = taking(store, "fire.before_commit")
    fired = fire(store, "tick", now=DUE)
    assert (fired.jobs, fired.skipped, fired.unique) == ([], 1, 1)
    assert [line.reason for line in ledger(store, "tick")] == [f"unique (job {taken[0]})"]
    assert ids(all_jobs(store)) == taken


def test_an_occurrence_that_its_key_refuses_at_the_insert_is_no_run(store, taking):
    before = add_schedule(store, "tick", key="k", overlap="allow", max_runs=1)
    taking(store, "fire.before_commit")
    fire(store, "tick", now=DUE)
    kept = read_schedule(store)
    assert (kept.run_count, kept.last, kept.next_at) == (0, before.last, DUE + MINUTE)
    succeed(store, claim_one(store, queues=("other",), now=DUE), now=DUE)
    assert [one.id for one in store.due_schedules(9, now=DUE + MINUTE).schedules] == ["tick"]
    (made,) = fire(store, "tick", now=DUE + MINUTE).jobs
    kept = read_schedule(store)
    assert (kept.run_count, kept.last.job_id, kept.next_at) == (1, made, None)


def test_a_run_by_hand_that_its_key_refuses_at_the_insert_is_no_run(store, taking):
    before = add_schedule(store, "tick", key="k")
    taken = taking(store, "edit.before_commit")
    kept = change_schedule(store, trigger_now(before, DUE, "by-hand"), now=DUE)
    assert (kept.last, kept.runs, kept.version) == (before.last, 0, before.version + 1)
    assert ids(all_jobs(store)) == taken


def test_what_was_recorded_as_skipped_is_not_made_by_a_later_delivery(store, taking, monkeypatch):
    """The first process dies when the line is written and the outbox is not yet cleared; then the key becomes free."""
    add_schedule(store, "tick", key="k", overlap="allow", max_runs=1)

    def die(*_args, **_options):
        raise Crash

    with monkeypatch.context() as patch:
        taken = taking(store, "fire.before_commit", lambda: patch.setattr(Collection, "update_one", die))
        with pytest.raises(Crash):
            fire(store, "tick", now=DUE)
    assert "outbox" in documents(store).schedules.find_one({"_id": "tick"})
    succeed(store, claim_one(store, queues=("other",), now=DUE), now=DUE)
    kept = read_schedule(store)
    assert (kept.run_count, kept.last.job_id, kept.next_at) == (0, None, DUE + MINUTE)
    assert [line.reason for line in ledger(store, "tick")] == [f"unique (job {taken[0]})"]
    assert ids(all_jobs(store)) == taken
    assert len(fire(store, "tick", now=DUE + MINUTE).jobs) == 1


def test_a_job_retried_by_hand_under_a_claim_is_claimed_with_the_past_that_it_has(store):
    """Cancelled and retried between a worker's look and its write: it is queued again, and not what was seen."""
    job_id = add_job(store)

    def meddle(name: str) -> None:
        if name == "exchange.before_commit":
            failpoints.install(None)
            assert store.change_jobs([cancel(read(store, job_id), T0, "by hand")], now=T0) == []
            assert store.change_jobs([retry_by_hand(read(store, job_id), T0, "by hand")], now=T0) == []

    failpoints.install(meddle)
    try:
        first = claim(store, 1, now=T0)
    finally:
        failpoints.install(None)
    (job,) = first or claim(store, 1, now=T0)
    assert job == read(store, job_id)
    settle_job(store, job, Returned(), now=T0)
    moves = [State.QUEUED, State.CANCELLED, State.QUEUED, State.RUNNING, State.QUEUED]
    assert history(store, job_id) == moves


MISTAKEN = {"code": 20, "errmsg": "Transaction numbers are only allowed on a replica set member or mongos"}
BROKEN_OFF = {"code": 11602, "errmsg": "operation was interrupted"}


@pytest.mark.parametrize(
    "err",
    [
        BulkWriteError({"writeErrors": [{"index": 0, **BROKEN_OFF}], "writeConcernErrors": []}),
        BulkWriteError({"writeErrors": [], "writeConcernErrors": [{"code": 91, "errmsg": "shutting down"}]}),
        BulkWriteError({"writeErrors": [], "writeConcernErrors": [{"code": 79, "errmsg": "no such mode"}]}),
        BulkWriteError({"writeErrors": [{"index": 0, "code": 11000}], "errorLabels": ["RetryableWriteError"]}),
        OperationFailure("This MongoDB deployment does not support retryable writes", 20, MISTAKEN),
        WriteConcernError("waiting for replication was interrupted", 11602, {"code": 11602}),
    ],
)
def test_a_batch_that_the_servers_end_broke_off_is_an_outage(err):
    assert isinstance(translate(err, "there"), StoreUnavailable)


def test_a_batch_that_met_something_else_is_not():
    told = translate(BulkWriteError({"writeErrors": [{"index": 0, "code": 121, "errmsg": "invalid"}]}), "there")
    assert type(told) is StoreError
    assert "invalid" in str(told)
