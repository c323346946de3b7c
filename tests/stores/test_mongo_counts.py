"""MongoDB replica sets: a job that is added alone is counted by the command that begins its verb."""

from __future__ import annotations

import pymongo
import pytest
from mongo_servers import documents, emptied, replica_set_url  # noqa: F401
from pymongo.monitoring import CommandListener

from rota import failpoints
from rota.errors import StoreError, StoreSealed
from rota.model.jobs.job import State, accept
from rota.store.contract import Retention, Seal
from rota.store.mongo import MongoStore, counters
from rota.store.mongo.adding import insert
from rota.testing.store_suite.builders import DAY, HOUR, T0, a_job
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add, add_job, all_jobs, claim_one, queue_info, succeed

KEEP_ALL = Retention(succeeded_for=10_000 * DAY, failed_for=10_000 * DAY, cancelled_for=10_000 * DAY)
CONTROL = {"_id": "control"}


class Crash(Exception):
    """A process that dies."""


class Answered(CommandListener):
    """The names of the commands that the server answers."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: pymongo.monitoring.CommandStartedEvent) -> None:
        if event.command.get("writeConcern", {}).get("w") != 0:
            self.names.append(event.command_name)

    def succeeded(self, event: object) -> None:
        """Nothing more to learn."""

    failed = succeeded


@pytest.fixture
def make_store(replica_set_url):  # noqa: F811
    return emptied(replica_set_url)


@pytest.fixture
def store(make_store):
    with opened(make_store) as handle:
        yield handle


@pytest.fixture
def refuse_jobs(store):
    """Have the server refuse all new jobs."""
    db = documents(store)

    def refuse(*, is_refused: bool) -> None:
        db.database.command("collMod", db.jobs.name, validator={"task": "none"} if is_refused else {})

    yield lambda: refuse(is_refused=True)
    refuse(is_refused=False)


def added(store):
    """What the control document counts."""
    return documents(store).meta.find_one(CONTROL).get("added", {})


def rows(store):
    """How many documents the other counters have."""
    return documents(store).counters.count_documents({})


def upkeep(store):
    """Two rounds, far enough apart."""
    for n in range(2):
        store.prune(KEEP_ALL, 100, now=T0 + n * HOUR)


class TestJobsAddedAlone:
    def test_a_job_takes_two_answered_commands(self, replica_set_url, store):  # noqa: F811
        answered = Answered()
        with (
            pymongo.MongoClient(replica_set_url, event_listeners=[answered]) as client,
            opened(lambda: MongoStore(client, namespace=store.namespace)) as other,
        ):
            add_job(other)  # also marks its ten minutes
            answered.names.clear()
            add_job(other)
            assert answered.names == ["findAndModify", "insert"]

    def test_it_is_counted_in_the_control_document_alone(self, store):
        add_job(store)
        add_job(store)
        assert (list(added(store).values()), rows(store)) == ([2], 0)
        assert queue_info(store).counts == {"queued": 2}
        check_store(store)

    def test_its_end_is_counted_elsewhere_and_both_are_added_up(self, store):
        add_job(store)
        add_job(store)
        succeed(store, claim_one(store))
        assert queue_info(store).counts == {"queued": 1, "succeeded": 1}
        assert list(added(store).values()) == [2]
        check_store(store)

    @pytest.mark.parametrize(
        ("job", "state"), [({"key": "a"}, State.QUEUED), ({"delay": HOUR}, State.SCHEDULED)], ids=["key", "delay"]
    )
    def test_a_job_that_may_exist_or_wait_is_counted_when_it_is_there(self, store, job, state):
        add_job(store, **job)
        assert (added(store), rows(store)) == ({}, 1)
        assert queue_info(store).counts == {state.value: 1}

    def test_a_batch_is_counted_when_it_is_there(self, store):
        add(store, a_job(), a_job())
        assert (added(store), rows(store)) == ({}, 1)
        check_store(store)

    def test_the_names_of_queues_are_kept_apart(self, store):
        names = ["a.b", "a", "a:b", "a-b", "0", "a%2Eb", "$a", "ä"]
        for name in names:
            add_job(store, queue=name)
        assert sorted(info.name for info in store.list_queues()) == sorted(names)
        assert (len(added(store)), rows(store)) == (len(names), 0)
        check_store(store)

    def test_a_sealed_store_counts_nothing(self, store):
        store.seal(Seal(target="there"))
        with pytest.raises(StoreSealed):
            add_job(store)
        assert added(store) == {}

    def test_queues_beyond_the_room_are_counted_elsewhere(self, store, monkeypatch):
        monkeypatch.setattr(counters, "LARGEST_ADDED", 60)
        names = [f"queue-{n}" for n in range(10)]
        for _ in range(2):
            for name in names:
                add_job(store, queue=name)
        assert 0 < len(added(store)) < 10
        assert rows(store) > 0
        assert {info.name: info.counts for info in store.list_queues()} == {name: {"queued": 2} for name in names}
        check_store(store)


class TestWhatIsTakenBack:
    def test_a_job_that_exists_counts_once(self, store):
        job = a_job()
        assert [store.add_jobs([job], now=T0)[0].existed for _ in range(3)] == [False, True, True]
        assert queue_info(store).counts == {"queued": 1}
        check_store(store)

    def test_a_job_that_the_server_refuses_counts_nothing(self, store, refuse_jobs):
        add_job(store)
        refuse_jobs()
        with pytest.raises(StoreError, match="failed validation"):
            add_job(store)
        assert queue_info(store).counts == {"queued": 1}
        check_store(store)

    def test_a_job_that_the_driver_refuses_counts_nothing(self, store):
        with pytest.raises(UnicodeEncodeError):
            add_job(store, task="\ud800")
        assert store.recount() == {}


class TestProcessesThatDie:
    def test_upkeep_corrects_a_count_whose_job_never_came(self, store):
        add_job(store)
        with pytest.raises(Crash), store._steps.work(T0, "default"):
            raise Crash
        assert store.recount() == {"default/queued": 1}
        upkeep(store)
        assert store.recount() == {}
        assert queue_info(store).counts == {"queued": 1}
        add_job(store)
        check_store(store)

    @pytest.mark.parametrize("is_written", [True, False], ids=["written", "taken back"])
    def test_two_verbs_in_progress_are_no_lasting_difference(self, store, is_written):
        """One at each of the two times when upkeep counts."""
        with store._steps.work(T0, "default"):
            store.prune(KEEP_ALL, 100, now=T0)

        def end_first(step):
            step.counts.remove("default", State.QUEUED)
            insert(step, [accept(a_job(), T0)] if is_written else [])

        store._steps.run("add", end_first, is_atomic=False)
        with store._steps.work(T0, "default"):
            store.prune(KEEP_ALL, 100, now=T0 + HOUR)
            assert store.recount() == {"default/queued": 1}

    def test_a_job_whose_process_died_after_it_was_written_is_counted(self, store):
        def die(name):
            if name == "add.before_commit":
                raise Crash

        failpoints.install(die)
        try:
            with pytest.raises(Crash):
                add_job(store)
        finally:
            failpoints.install(None)
        assert len(all_jobs(store)) == 1
        check_store(store)

    def test_a_control_document_that_lost_its_numbers_is_corrected(self, store):
        add_job(store)
        add(store, a_job(key="a"))
        assert queue_info(store).counts == {"queued": 2}
        documents(store).meta.update_one(CONTROL, {"$unset": {"added": ""}})
        assert store.recount() == {"default/queued": -1}
        upkeep(store)
        assert queue_info(store).counts == {"queued": 2}
