"""Jobs that threads add to a SQLite file at the same time: one transaction for those that wait, an outcome for each."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from rota.errors import StoreError, StoreSealed
from rota.failpoints import install
from rota.store.contract import Added, JobFilter, Seal
from rota.store.sqlite import SqliteStore
from rota.store.sqlite.adding import MOST_GROUPED, GroupAdder, _Caller
from rota.testing.store_suite.builders import a_job

PATIENCE = 120.0
TOO_HIGH = 2**70  # a priority that SQLite cannot store


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "rota.db")
    store.open()
    yield store
    store.close()


class Transactions:
    """Counts the transactions that add jobs, and holds the first one open until it may go on."""

    def __init__(self) -> None:
        self.has_begun, self.may_commit = threading.Event(), threading.Event()
        self.committed = 0
        self.after_first = lambda: None

    def __call__(self, place: str) -> None:
        if place == "add.before_commit" and not self.has_begun.is_set():
            self.has_begun.set()
            assert self.may_commit.wait(PATIENCE)
        self.committed += place == "add.after_commit"
        if place == "add.after_commit" and self.committed == 1:
            self.after_first()


@contextmanager
def one_writes_and_others_wait(store, *jobs):
    """These jobs are each added by a thread of their own while a transaction is open, and wait for its end."""
    transactions = Transactions()
    install(transactions)
    try:
        with ThreadPoolExecutor(len(jobs) + 1) as pool:
            first = pool.submit(store.add_jobs, [a_job(id="first")])
            assert transactions.has_begun.wait(PATIENCE)
            others = []
            for number, job in enumerate(jobs, start=1):
                others.append(pool.submit(store.add_jobs, [job]))
                wait_for_callers(store._adder._group_adder, number)
            yield others, transactions
            transactions.may_commit.set()
            assert [added.id for added in first.result(PATIENCE)] == ["first"]
    finally:
        transactions.may_commit.set()
        install(None)


def wait_for_callers(adder, number):
    alarm = threading.Event()
    for _ in range(int(PATIENCE * 1_000)):
        if len(adder._waiting) == number:
            return
        alarm.wait(0.001)
    raise AssertionError(f"not {number} callers wait")


def ids_in(store):
    return sorted(job.id for job in store.list_jobs(JobFilter(), limit=200).items)


def test_jobs_that_wait_for_a_transaction_are_added_by_the_next_one(store):
    with one_writes_and_others_wait(store, *[a_job(id=f"job-{n}") for n in range(5)]) as (others, transactions):
        transactions.may_commit.set()
        added = [other.result(PATIENCE) for other in others]
    assert [[one.id for one in mine] for mine in added] == [[f"job-{n}"] for n in range(5)]
    assert not any(one.existed for mine in added for one in mine)
    assert transactions.committed == 2
    assert ids_in(store) == ["first", *(f"job-{n}" for n in range(5))]


def test_a_transaction_adds_a_bounded_number_of_jobs(store):
    jobs = [a_job() for _ in range(MOST_GROUPED + 1)]
    with one_writes_and_others_wait(store, *jobs) as (others, transactions):
        transactions.may_commit.set()
        assert [other.result(PATIENCE)[0].id for other in others] == [job.id for job in jobs]
    assert transactions.committed == 3


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_job_that_cannot_be_stored_fails_for_its_own_caller(store, place):
    jobs = [a_job(id=f"job-{n}", priority=TOO_HIGH if n == place else 0) for n in range(3)]
    with one_writes_and_others_wait(store, *jobs) as (others, transactions):
        transactions.may_commit.set()
        with pytest.raises(OverflowError):
            others.pop(place).result(PATIENCE)
        good = [other.result(PATIENCE)[0].id for other in others]
    assert ids_in(store) == ["first", *good]
    assert len(good) == 2


def test_a_fault_of_one_row_reaches_its_own_caller_although_it_is_an_error_of_the_store(store):
    jobs = [a_job(id="good"), a_job(id="bad"), a_job(id="better")]
    adder = store._adder._group_adder
    add_jobs = adder._add_jobs

    def refuse_bad(jobs):
        if any(job.id == "bad" for job in jobs):
            raise StoreError("this row cannot be written")
        return add_jobs(jobs)

    adder._add_jobs = refuse_bad
    with one_writes_and_others_wait(store, *jobs) as (others, transactions):
        transactions.may_commit.set()
        found = [other.exception(PATIENCE) for other in others]
    assert [type(one) for one in found] == [type(None), StoreError, type(None)]
    assert ids_in(store) == ["better", "first", "good"]


def test_a_job_that_is_there_already_is_said_to_its_caller(store):
    store.add_jobs([a_job(id="again")])
    with one_writes_and_others_wait(store, a_job(id="new"), a_job(id="again")) as (others, transactions):
        transactions.may_commit.set()
        assert [other.result(PATIENCE)[0].existed for other in others] == [False, True]


@pytest.mark.parametrize("place", ["_enter", "_write"])
def test_an_interrupt_anywhere_leaves_nobody_waiting(store, monkeypatch, place):
    adder = store._adder._group_adder
    real = getattr(adder, place)

    def interrupted(*values):
        real(*values)
        raise KeyboardInterrupt

    monkeypatch.setattr(adder, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.add_jobs([a_job()])
    monkeypatch.undo()
    assert (adder._writer, adder._waiting, adder._inside) == (None, [], set())
    store.add_jobs([a_job(id="later")])
    assert "later" in ids_in(store)


def test_a_refusal_of_the_store_reaches_every_caller(store):
    with one_writes_and_others_wait(store, a_job(), a_job(), a_job()) as (others, transactions):
        transactions.after_first = lambda: store.seal(Seal(target="elsewhere"))
        transactions.may_commit.set()
        assert [type(other.exception(PATIENCE)) for other in others] == [StoreSealed] * 3
    assert ids_in(store) == ["first"]


def test_a_group_is_added_one_by_one_if_the_thread_that_writes_it_is_interrupted():
    has_begun, may_end = threading.Event(), threading.Event()
    calls = []

    def add_jobs(jobs):
        calls.append([job.id for job in jobs])
        if len(calls) == 1:
            has_begun.set()
            assert may_end.wait(PATIENCE)
        if len(jobs) > 1:
            raise KeyboardInterrupt
        return [Added(job.id) for job in jobs]

    adder = GroupAdder(add_jobs)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(adder.add, a_job(id="first"))
        assert has_begun.wait(PATIENCE)
        others = []
        for number in range(3):
            others.append(pool.submit(adder.add, a_job(id=f"job-{number}")))
            wait_for_callers(adder, number + 1)
        may_end.set()
        first.result(PATIENCE)
        assert isinstance(others[0].exception(PATIENCE), KeyboardInterrupt)
        assert [other.result(PATIENCE)[0].id for other in others[1:]] == ["job-1", "job-2"]
    assert sorted(calls[2:]) == [["job-1"], ["job-2"]]
    adder.add(a_job(id="later"))
    assert calls[-1] == ["later"]


def test_a_job_that_is_added_while_its_own_thread_adds_another_does_not_wait(store):
    """As a signal handler does, or the handler of a log line."""
    inner = []

    def add_another(place):
        if place == "add.after_commit" and not inner:
            inner.append("begun")
            inner.extend(store.add_jobs([a_job(id="inner")]))

    install(add_another)
    try:
        store.add_jobs([a_job(id="outer")])
    finally:
        install(None)
    assert ids_in(store) == ["inner", "outer"]


def test_a_child_does_not_wait_for_a_thread_of_its_parent(store):
    adder = GroupAdder(store._adder._add_jobs)
    adder._enter(_Caller(a_job()))  # a thread writes when the process forks
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if adder.add(a_job(id="of-the-child"))[0].id == "of-the-child" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ids_in(store) == ["of-the-child"]


def test_adding_a_job_leaves_nothing_to_the_garbage_collector(store):
    gc.collect()
    gc.disable()
    try:
        store.add_jobs([a_job()])
        assert not [one for one in gc.get_objects() if isinstance(one, _Caller)]
    finally:
        gc.enable()
