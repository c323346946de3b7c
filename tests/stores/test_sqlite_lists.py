"""Lists on SQLite: the database's own steps are counted, and a few jobs behind many cost few."""

from __future__ import annotations

import sqlite3

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Returned
from rota.model.jobs.settle import cancel, settle
from rota.store.contract import Exchange, JobFilter, Retention
from rota.store.sqlite import SqliteStore
from rota.store.sqlite.listing import FEW
from rota.store.sqlite.transaction import LARGEST_IN
from rota.testing.store_suite.builders import HOUR, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add, add_job, add_schedule, claim, fail, settle_job, succeed

MANY = 20_000
BOOM = Failed("boom", may_retry=False)
KEEP_NOTHING = Retention(succeeded_for=0, failed_for=0)
BOUND = 20_000  # steps of the database's machine; a walk over all jobs takes more than ten for each


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with opened(lambda: SqliteStore(tmp_path_factory.mktemp("lists") / "rota.db")) as store:
        first = add_job(store, now=T0, task="rare.one")
        add(store, *[a_job(task="rare.one", queue="rare") for _ in range(5)])
        add(store, *[a_job(task="rare.one", delay=HOUR) for _ in range(5)], a_job(task="rare.one", waits_for=first))
        add(store, *[a_job() for _ in range(20)])
        for number, job in enumerate(claim(store, 20)):
            (succeed if number % 2 else fail)(store, job)
        rare = store.list_jobs(JobFilter(states=(State.QUEUED,), queue="rare"), limit=2).items
        store.change_jobs([cancel(job, T0, "not needed") for job in rare], now=T0)
        for _ in range(0, MANY, 1_000):
            add(store, *[a_job() for _ in range(1_000)], now=T0 + HOUR)
        yield store


def steps_of(store, where, read=SqliteStore.list_jobs):
    """How many hundreds of steps a list took, as steps."""
    steps = 0

    def count():
        nonlocal steps
        steps += 100

    with store._database.read() as connection:  # the one that this thread reads with
        connection.set_progress_handler(count, 100)
    read(store, where)
    with store._database.read() as connection:
        connection.set_progress_handler(None, 0)
    return steps


@pytest.mark.parametrize("state", State)
def test_a_few_in_a_state_are_found_behind_many(store, state):
    assert steps_of(store, JobFilter(states=(state,))) < BOUND


@pytest.mark.parametrize("where", [{"queue": "rare"}, {"task": "rare.one"}, {"task": "rare.*"}, {"task": "none"}])
def test_a_few_of_a_kind_are_found_behind_many(store, where):
    assert steps_of(store, JobFilter(**where)) < BOUND


@pytest.mark.parametrize("where", [{}, {"task": "rare.*"}, {"states": (State.QUEUED,)}, {"states": (State.SUCCEEDED,)}])
def test_a_few_of_a_time_are_found_behind_many(store, where):
    for times in ({"until": T0 + 1}, {"since": T0, "until": T0 + 1}, {"until": T0}, {"since": T0 + 2 * HOUR}):
        assert steps_of(store, JobFilter(**where, **times)) < BOUND


def end_badly(store, number, **fields):
    for _ in range(0, number, 1_000):
        add(store, *[a_job(task="often", **fields) for _ in range(1_000)])
        jobs = claim(store, 1_000)
        store.exchange(Exchange(holder=WORKER, settled=[settle(job, BOOM, a_policy(0), T0, 0.0) for job in jobs]))


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A schedule with many jobs, of which few failed; and a task with few failures behind many of another."""
    with opened(lambda: SqliteStore(tmp_path_factory.mktemp("failing") / "rota.db")) as store:
        add(store, *[a_job(task="rare.one") for _ in range(5)])
        for job in claim(store, 5):
            fail(store, job)
        end_badly(store, 3_000)
        for _ in range(5):
            add(store, *[a_job(task="tick", schedule_id="tick") for _ in range(1_000)])
        yield store


@pytest.mark.parametrize("read", [SqliteStore.list_jobs, SqliteStore.count_jobs])
def test_few_failures_of_a_task_are_found_behind_many(failing, read):
    assert steps_of(failing, JobFilter(states=(State.FAILED,), task="rare.one"), read) < 1_500 * 10


@pytest.mark.parametrize("read", [SqliteStore.list_jobs, SqliteStore.count_jobs])
def test_failures_of_a_schedule_are_found_among_its_many_jobs(failing, read):
    assert steps_of(failing, JobFilter(states=(State.FAILED,), schedule_id="tick"), read) < (FEW + 3_005) * 10


@pytest.mark.parametrize(
    "where",
    [{"states": (State.FAILED,), "task": "often", "until": T0 + HOUR}, {"schedule_id": "tick", "since": T0}],
    ids=str,
)
def test_a_count_of_a_rare_state_or_a_schedule_reads_its_index_alone(failing, where):
    statements = []
    with failing._database.read() as connection:
        connection.set_trace_callback(statements.append)
    assert failing.count_jobs(JobFilter(**where)) >= 3_000
    with failing._database.read() as connection:
        connection.set_trace_callback(None)
        counts = [statement for statement in statements if statement.startswith("SELECT count(*) FROM (SELECT 1")]
        plans = [row[3] for query in counts for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert [plan for plan in plans if "rota_job" in plan and "COVERING INDEX" not in plan] == []
    assert any("COVERING INDEX" in plan for plan in plans)


def test_few_ready_jobs_of_a_task_are_found_among_its_many(tmp_path):
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store:
        end_badly(store, 5_000)
        add_job(store, task="often")
        for read in (SqliteStore.list_jobs, SqliteStore.count_jobs):
            assert steps_of(store, JobFilter(states=(State.QUEUED,), task="often"), read) < BOUND


@pytest.mark.parametrize("where", [{"task": "often"}, {"schedule_id": "tick"}], ids=str)
@pytest.mark.parametrize("waiting", [0, 1])
def test_few_ready_jobs_are_found_behind_many_of_other_tasks(tmp_path, where, waiting):
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store:
        end_badly(store, 5_000, schedule_id="tick")
        for _ in range(0, FEW + 1, 1_000):
            add(store, *[a_job(queue="line") for _ in range(1_000)])
        made = add(store, *[a_job(task="often", schedule_id="tick") for _ in range(waiting)])
        filled = JobFilter(states=(State.QUEUED,), **where)
        assert [job.id for job in store.list_jobs(filled).items] == made
        assert store.count_jobs(filled) == waiting
        for read in (SqliteStore.list_jobs, SqliteStore.count_jobs):
            assert steps_of(store, filled, read) < 2 * BOUND


def test_the_same_count_shows_a_walk(store):
    """Jobs of the same ten minutes are looked at one by one: the count would tell."""
    assert steps_of(store, JobFilter(since=T0 + HOUR + 1)) > 2 * BOUND


def test_block_entries_go_with_their_jobs(tmp_path):
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store:
        add(store, *[a_job(task="early") for _ in range(2_000)])
        for _ in range(20):
            for job in claim(store, 100, now=T0):
                succeed(store, job)
        add(store, *[a_job(task="late") for _ in range(2_000)])
        while store.prune(KEEP_NOTHING, 500, now=T0 + HOUR).jobs:
            pass
        with store._database.read() as connection:
            kinds = connection.execute("SELECT min(block) FROM rota_kind_block").fetchone()
            successes = connection.execute("SELECT min(block) FROM rota_success_block").fetchone()
            times = connection.execute("SELECT min(block) FROM rota_time_block").fetchone()
        assert kinds == successes == times == (2,)  # the first that is kept has position 2,001


def test_jobs_in_callers_own_transactions_leave_nothing_in_memory(tmp_path):
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store, store._database.write() as connection:
        for number in range(20):
            store.add_jobs_in(connection, [a_job(task=f"task-{number}")])
        assert store._blocks.fresh() == []


def test_block_entries_are_read_once_a_block(tmp_path):
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store:
        add(store, *[a_job() for _ in range(20)])
        for job in claim(store, 20, now=T0):
            succeed(store, job)
        statements = []
        with store._database.write() as connection:
            connection.set_trace_callback(statements.append)
        while store.prune(KEEP_NOTHING, 5, now=T0 + HOUR).jobs:
            pass
        assert statements
        assert not [statement for statement in statements if statement.startswith("DELETE FROM rota_kind_block")]


def test_a_job_that_moves_while_a_list_is_read_is_neither_missed_nor_shown_twice(tmp_path, monkeypatch):
    """A list of several states looks at one after another, all of them as they were when it began."""
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store:
        add_job(store)
        (job,) = claim(store)
        in_state = store._listing._in_state

        def moving(reader, state, *rest):
            found = in_state(reader, state, *rest)
            if state is State.QUEUED:
                settle_job(store, job, Returned())
            return found

        monkeypatch.setattr(store._listing, "_in_state", moving)
        (shown,) = store.list_jobs(JobFilter(states=(State.QUEUED, State.RUNNING)), limit=1).items
        assert (shown.id, shown.state) == (job.id, State.RUNNING)
        assert store.get_jobs([job.id])[0].state is State.QUEUED


def test_more_schedules_are_read_than_a_statement_may_have_values(tmp_path):
    """Builds of SQLite differ in that number."""
    with opened(lambda: SqliteStore(tmp_path / "rota.db")) as store:
        names = [f"s{number:04}" for number in range(0, 3 * LARGEST_IN, LARGEST_IN - 1)]
        for name in names:
            add_schedule(store, name)
        with store._database.read() as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, LARGEST_IN)
        asked = [f"s{number:04}" for number in range(3 * LARGEST_IN)]
        assert [schedule.id for schedule in store.get_schedules(asked)] == names
