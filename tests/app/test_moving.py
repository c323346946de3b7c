"""Moving from one store to another: all of it arrives once, refusals change nothing, and stopped moves go on."""

from __future__ import annotations

import sqlite3
import threading
from itertools import pairwise, product

import msgspec
import pytest

from every_store import SERVED, fresh_place
from rota.errors import Refused, StoreError, StoreSealed
from rota.model.entry import EntryEdit
from rota.model.jobs.job import Job, State, history_of
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.retry import RetryPolicy
from rota.model.jobs.settle import settle
from rota.operations import copy
from rota.operations.copy import PARTS, Moved, check, move, undo
from rota.store.contract import Exchange, Seal
from rota.store.memory import MemoryStore
from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.builders import LEASE, a_job, a_line
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.furnished import everything, furnish, movable
from rota.testing.store_suite.steps import all_jobs, ids, new_schedule, read

EMBEDDED = ("memory", "sqlite")
SERVERS = tuple(kind for kind in ("redis", "postgres", "mongo") if kind in SERVED)
PAIRS = [*product(EMBEDDED, EMBEDDED), *pairwise(("sqlite", *SERVERS, "sqlite"))]  # each is once left and once filled

pytest.register_assert_rewrite("rota.testing.store_suite.checks")


@pytest.fixture
def open_store(tmp_path):
    """Opens stores, each in a place of its own."""
    opened = []

    def make(kind):
        folder = tmp_path / str(len(opened))
        folder.mkdir()
        store = fresh_place(kind, folder).make()
        store.open()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture(params=dict.fromkeys(PAIRS), ids=" to ".join)
def pair(request, open_store):
    """The store to leave, with something of everything in it, and an empty one."""
    source, target = (open_store(kind) for kind in request.param)
    furnish(source)
    return source, target


@pytest.fixture
def source(open_store):
    store = open_store("sqlite")
    furnish(store)
    return store


@pytest.fixture
def target(open_store):
    return open_store("sqlite")


def hand_out(store, number=1):
    """Running jobs under leases of the store's own clock."""
    store.add_jobs([a_job(queue="own", payload=b"[1]") for _ in range(number)])
    return store.exchange(Exchange(holder="worker-9", want=number, queues=("own",), lease_for=LEASE)).claimed


def succeed(store, job):
    change = settle(job, Succeeded(b"1"), RetryPolicy(), store.now(), 0.0)
    return store.exchange(Exchange(holder="worker-9", settled=[change])).refused


def test_everything_arrives_between_any_two_stores(pair):
    source, target = pair
    moved = move(source, target, wait=0)
    assert movable(target) == movable(source)
    assert moved.records == {part: len(records) for part, records in everything(source).items()}
    assert moved.copied >= sum(number for part, number in moved.records.items() if part != "queues")
    check_store(target)


def test_the_first_store_is_sealed_for_good_and_the_second_takes_work(pair):
    source, target = pair
    move(source, target, wait=0)
    assert source.sealed().is_done
    assert source.sealed().target == target.describe()
    with pytest.raises(StoreSealed, match="restart with the URL of that store"):
        source.add_jobs([a_job()])
    assert target.sealed() is None
    assert target.add_jobs([a_job(key="taken")])[0].existed


def test_the_record_of_a_stores_clock_stays_where_it_is(open_store):
    source, target = open_store("memory"), open_store("memory")
    furnish(source)
    for store in (source, target):  # as a node writes it that was started too early
        store.edit_entries([EntryEdit(kind="clock", name="store", data=store.describe(), expect_version=0)])
    move(source, target, wait=0)
    assert target.get_entries("clock", ["store"])[0].data == target.describe()


def test_an_empty_store_is_moved_too(open_store, target):
    assert move(open_store("memory"), target) == Moved(dict.fromkeys(PARTS, 0), copied=0, given_back=0)


def test_a_move_and_the_way_back_leave_everything_as_it_was(pair, open_store):
    source, target = pair
    move(source, target, wait=0)
    back = open_store(source.features.kind)
    move(target, back)
    assert movable(back) == movable(source)


def test_each_step_is_told(pair):
    source, target = pair
    heard = []
    move(source, target, wait=0, on_step=heard.append)
    assert [step.phase for step in heard] == sorted((step.phase for step in heard), key=["wait", "copy", "check"].index)
    assert {step.part for step in heard if step.phase == "copy"} == set(PARTS)
    assert {step.part for step in heard if step.phase == "check"} == set(PARTS)
    assert max(step.done for step in heard if step.part == "jobs" and step.phase == "copy") == len(all_jobs(target))


class TestWhatRuns:
    def test_a_running_job_may_end_first(self, pair):
        source, target = pair
        (job,) = hand_out(source)

        def on_step(step):
            if step.phase == "wait" and step.done and read(source, job.id).state is State.RUNNING:
                assert succeed(source, job) == []

        assert move(source, target, on_step=on_step).given_back == 0
        assert read(target, job.id).state is State.SUCCEEDED

    def test_what_still_runs_at_the_end_of_the_wait_is_given_back_and_spends_nothing(self, pair):
        source, target = pair
        jobs = hand_out(source, 3)
        assert move(source, target, wait=0).given_back == 3
        for job in jobs:
            moved = read(target, job.id)
            assert (moved.state, moved.attempts, moved.failures, moved.deaths) == (State.QUEUED, 0, 0, 0)
            assert history_of(moved)[-1].reason.startswith("the store is being copied to ")

    def test_a_job_that_was_given_back_is_fenced_from_its_old_worker(self, pair):
        source, target = pair
        (old,) = hand_out(source)
        move(source, target, wait=0)
        assert ids(succeed(source, old)) == [old.id]
        (new,) = target.exchange(Exchange(holder="worker-2", want=1, queues=("own",))).claimed
        assert (new.id, new.lease_no) == (old.id, old.lease_no + 1)

    def test_a_job_that_was_asked_to_stop_does_not_start_anew(self, pair):
        source, target = pair
        (job,) = hand_out(source)
        source.request_cancels([job.id], "enough")
        move(source, target, wait=0)
        assert (read(target, job.id).state, read(target, job.id).cancel_reason) == (State.CANCELLED, "enough")

    def test_a_dead_workers_job_is_rescued_while_others_are_waited_for(self, pair):
        source, target = pair
        (expired,) = (job for job in all_jobs(source) if job.state is State.RUNNING)  # since 2026 began
        (job,) = hand_out(source)

        def on_step(step):
            if step.phase == "wait" and step.done == 1 and read(source, job.id).state is State.RUNNING:
                succeed(source, job)

        assert move(source, target, on_step=on_step).given_back == 0
        assert read(target, expired.id).deaths == 1

    def test_a_late_line_of_a_voided_job_harms_nothing(self, pair):
        source, target = pair
        (job,) = hand_out(source)

        def on_step(step):
            if step.phase == "check":
                source.append_logs([a_line(job.id, "still here")])

        move(source, target, wait=0, on_step=on_step)
        assert source.sealed().is_done


class TestCallersTransactions:
    """SQLite's: a write that commits with the caller's own."""

    @pytest.fixture
    def connection(self, source):
        connection = sqlite3.connect(source.path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.close()

    def test_a_transaction_brings_no_job_to_a_sealed_store(self, source, connection):
        connection.execute("ROLLBACK")
        source.seal(Seal(target="elsewhere"))
        connection.execute("BEGIN")
        with pytest.raises(StoreSealed, match="is being copied to elsewhere"):
            source.add_jobs_in(connection, [a_job()])

    def test_a_transaction_ends_a_job_of_a_sealed_store(self, source, connection):
        connection.execute("ROLLBACK")
        (job,) = hand_out(source)
        source.seal(Seal(target="elsewhere"))
        change = settle(job, Succeeded(b"1"), RetryPolicy(), source.now(), 0.0)
        connection.execute("BEGIN")
        assert source.settle_in(connection, "worker-9", change)
        connection.execute("COMMIT")
        assert read(source, job.id).state is State.SUCCEEDED

    def test_a_seal_waits_for_a_transaction_that_brings_a_job(self, source, target, connection):
        (added,) = source.add_jobs_in(connection, [a_job()])
        mover = threading.Thread(target=move, args=(source, target), kwargs={"wait": 0})
        mover.start()
        assert target.sealed() is None
        connection.execute("COMMIT")
        mover.join(30)
        assert read(target, added.id).state is State.QUEUED


class Stopped(Exception):
    """A test ends a move on its way."""


def stopping_at(number):
    """A listener that ends the move at a step, counted from 0."""
    left = [number]

    def on_step(_step):
        if not left[0]:
            raise Stopped
        left[0] -= 1

    return on_step


class TestGoingOn:
    def test_a_move_that_was_stopped_anywhere_goes_on(self, pair, open_store, monkeypatch):
        monkeypatch.setattr(copy, "BATCH", 7)
        source, first = pair
        steps = []
        whole = open_store("memory")
        furnish(whole)
        move(whole, open_store("memory"), wait=0, on_step=steps.append)
        targets = [first, *(open_store(first.features.kind) for _ in range(2))]
        for number, target in zip((1, len(steps) // 2, len(steps) - 1), targets, strict=True):
            with pytest.raises(Stopped):
                move(source, target, wait=0, on_step=stopping_at(number))
            with pytest.raises(StoreSealed, match="is being filled from"):
                target.add_jobs([a_job()])
            if target is not targets[-1]:
                undo(source)
        move(source, targets[-1], wait=0)
        assert movable(targets[-1]) == movable(source)
        check_store(targets[-1])

    def test_every_stop_of_one_move_is_overcome(self, source, target, monkeypatch):
        monkeypatch.setattr(copy, "BATCH", 10)
        number = 0
        while True:
            try:
                move(source, target, wait=0, on_step=stopping_at(number))
            except Stopped:
                number += 1
            else:
                break
        assert number > 10
        assert movable(target) == movable(source)
        check_store(target)

    def test_jobs_that_have_arrived_are_not_sent_again(self, open_store, monkeypatch):
        monkeypatch.setattr(copy, "BATCH", 10)
        source, target = open_store("sqlite"), open_store("memory")
        source.add_jobs([a_job() for _ in range(100)])
        sent = []
        load = target.load
        target.load = lambda records: sent.extend(records) or load(records)
        with pytest.raises(Stopped):
            move(source, target, on_step=stopping_at(9))
        arrived = len(all_jobs(target))
        assert 50 < arrived < 100
        sent.clear()
        assert move(source, target).copied == 100 - arrived
        assert len([record for record in sent if isinstance(record, Job)]) == 110 - arrived
        assert ids(all_jobs(target)) == ids(all_jobs(source))

    def test_a_move_that_was_stopped_before_the_target_was_sealed_goes_on(self, source, target):
        source.seal(Seal(target=target.describe(), id="before"))
        move(source, target, wait=0)
        assert movable(target) == movable(source)

    def test_a_move_that_was_stopped_before_the_target_was_opened_goes_on(self, source, target):
        move(source, target, wait=0)
        seal = source.sealed()
        target.seal(Seal(target=seal.target, source=source.describe(), id=seal.id))
        moved = move(source, target)
        assert (moved.copied, moved.records["jobs"]) == (0, len(all_jobs(source)))
        assert target.sealed() is None

    def test_a_move_that_is_called_off_under_way_does_not_end(self, source, target):
        def on_step(step):
            if step.phase == "check":
                source.seal(None)

        with pytest.raises(Refused, match="was called off meanwhile"):
            move(source, target, wait=0, on_step=on_step)
        assert source.sealed() is None
        assert target.sealed().source == source.describe()


class TestRefusals:
    """Each leaves both stores as they were."""

    @pytest.fixture(autouse=True)
    def _unchanged(self, source):
        yield
        assert source.sealed() is None or source.sealed().id == "theirs"

    def test_a_store_is_not_moved_into_itself(self, source):
        with pytest.raises(Refused, match="both sides are the same store"):
            move(source, source)

    def test_two_handles_on_one_store_are_found_out(self, source):
        again = SqliteStore(source.path, namespace=source.namespace)
        again.open()
        with pytest.raises(Refused, match="both sides are the same store"):
            move(source, again)
        again.close()

    def test_two_names_of_one_empty_store_are_found_out_by_the_seal(self, source, target):
        link = target.path.with_name("link.db")
        link.symlink_to(target.path)
        again = SqliteStore(link, namespace=target.namespace)
        again.open()
        with pytest.raises(Refused, match="both sides are the same store"):
            move(target, again)
        assert (target.sealed(), again.sealed()) == (None, None)
        again.close()
        assert source.sealed() is None

    @pytest.mark.parametrize(
        "use",
        [
            lambda store: store.add_jobs([a_job()]),
            lambda store: store.edit_schedules([new_schedule("mine")]),
            lambda store: store.change_lock("mine", "acquire", "token", 1),
            lambda store: store.pause_queue("mine", paused=True),
        ],
        ids=["a job", "a schedule", "a lock", "a paused queue"],
    )
    def test_a_target_with_something_of_its_own_is_refused(self, source, target, use):
        use(target)
        before = everything(target)
        with pytest.raises(Refused, match="already holds something of its own"):
            move(source, target)
        assert (target.sealed(), everything(target)) == (None, before)

    def test_a_job_that_comes_to_the_target_in_the_last_moment_ends_the_move(self, source):
        class Busy(MemoryStore):
            def seal(self, seal):
                if seal is not None:
                    self.add_jobs([a_job()])
                super().seal(seal)

        target = Busy()
        with pytest.raises(Refused, match="already holds something of its own"):
            move(source, target)
        assert target.sealed() is None

    def test_a_store_that_was_moved_says_where_to(self, open_store, target, source):
        left = open_store("memory")
        move(left, target)
        with pytest.raises(Refused, match=f"was copied to {target.describe()}; copy from there"):
            move(left, source)

    def test_a_store_that_is_being_moved_elsewhere_is_refused(self, source, target):
        source.seal(Seal(target="elsewhere", id="theirs"))
        with pytest.raises(Refused, match="is being copied to elsewhere; end that copy"):
            move(source, target)

    def test_a_target_that_is_being_left_is_refused(self, source, target):
        target.seal(Seal(target="elsewhere", id="other"))
        with pytest.raises(Refused, match="was itself copied to elsewhere"):
            move(source, target)

    def test_a_target_with_part_of_a_copy_that_was_called_off_is_refused(self, source, target):
        """The source went on meanwhile: what lies there is old, and would run twice."""
        with pytest.raises(Stopped):
            move(source, target, wait=0, on_step=stopping_at(3))
        undo(source)
        with pytest.raises(Refused, match="holds part of another copy"):
            move(source, target)

    def test_a_store_that_is_being_filled_is_not_left(self, source, target):
        target.seal(Seal(target="x", source="elsewhere", id="other"))
        with pytest.raises(Refused, match="is itself being filled from elsewhere"):
            move(target, source)

    def test_a_look_changes_nothing(self, source, target):
        assert check(source, target) is None
        assert (source.sealed(), target.sealed()) == (None, None)


class TestUndoing:
    def test_a_store_whose_move_has_not_ended_takes_work_again(self, source, target):
        before = movable(source)
        with pytest.raises(Stopped):
            move(source, target, wait=10**12, on_step=stopping_at(0))
        undo(source)
        assert source.sealed() is None
        assert movable(source) == before
        source.add_jobs([a_job()])

    def test_what_was_copied_stays_sealed(self, source, target):
        with pytest.raises(Stopped):
            move(source, target, wait=0, on_step=stopping_at(5))
        undo(source)
        with pytest.raises(StoreSealed):
            target.exchange(Exchange(holder="w", want=1))

    def test_there_must_be_a_move(self, source):
        with pytest.raises(Refused, match="is not being moved"):
            undo(source)

    def test_a_move_that_has_ended_stays(self, source, target):
        move(source, target, wait=0)
        with pytest.raises(Refused, match="work goes on there"):
            undo(source)

    def test_the_store_that_is_being_filled_is_not_meant(self, source, target):
        with pytest.raises(Stopped):
            move(source, target, wait=0, on_step=stopping_at(3))
        with pytest.raises(Refused, match="name that one with --from"):
            undo(target)


class Forgetful(MemoryStore):
    """Loses the last job of what it is given."""

    def load(self, records):
        kept = [record for record in records if not isinstance(record, Job)]
        jobs = [record for record in records if isinstance(record, Job)]
        return super().load([*kept, *jobs[:-1]])


class Careless(MemoryStore):
    """Keeps no payloads."""

    def load(self, records):
        plain = [
            msgspec.structs.replace(record, payload=b"[]") if isinstance(record, Job) else record for record in records
        ]
        return super().load(plain)


class Muddled(MemoryStore):
    """Takes jobs in the wrong order."""

    def load(self, records):
        return super().load(records[::-1])


class Deaf(MemoryStore):
    """Takes no schedules."""

    def load(self, records):
        return super().load([record for record in records if not hasattr(record, "spec")])


class Reticent(MemoryStore):
    """Gives out all jobs but the last."""

    def dump(self, part, *, cursor=None, limit=500):
        page = super().dump(part, cursor=cursor, limit=limit)
        return msgspec.structs.replace(page, items=page.items[:-1]) if part == "jobs" else page


class TestComparing:
    def test_a_source_that_does_not_give_out_all_jobs_is_found_out(self, target):
        source = Reticent()
        furnish(source)
        with pytest.raises(StoreError, match=r"more jobs than it gave out \(\d+\)"):
            move(source, target, wait=0)
        assert not source.sealed().is_done
        assert target.sealed() is not None

    @pytest.mark.parametrize(
        ("kind", "words"),
        [
            (Forgetful, "and only one of them has job "),
            (Careless, "differs in payload"),
            (Muddled, "differs in id"),
            (Deaf, "8 schedules were sent, 0 are there"),
        ],
    )
    def test_a_target_that_does_not_hold_it_all_is_found_out(self, source, kind, words):
        target = kind()
        with pytest.raises(StoreError, match=words) as told:
            move(source, target, wait=0)
        assert "Both stay sealed" in str(told.value)
        assert not source.sealed().is_done
        assert target.sealed() is not None
        undo(source)
