"""Lists by queue and task on PostgreSQL: what they look through is bounded, and every job is in the block index."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

from contextlib import closing
from functools import partial
from uuid import uuid4

import msgspec
import psycopg
import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.settle import settle
from rota.store.contract import Exchange, JobFilter, Retention
from rota.store.postgres import PostgresStore, listing
from rota.store.postgres.fast.block_index import BLOCK
from rota.testing.servers.postgres import drop_schema, shared_url
from rota.testing.store_suite.builders import DAY, HOUR, MINUTE, T0, WORKER, a_job, a_policy
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import (
    add,
    add_job,
    all_jobs,
    cancelled_job,
    claim,
    fail,
    fire_due,
    ids,
    new_schedule,
    succeed,
)
from stores.postgres_stage import *  # noqa: F403 - its fixtures
from stores.test_postgres_plans import wait_until_reported


def fill(store, number, *, now=T0, **values):
    """So many jobs in bulk; gives their ids."""
    made = []
    for start in range(0, number, 5_000):
        made += add(store, *[a_job(**values) for _ in range(min(5_000, number - start))], now=now)
    return made


@pytest.fixture
def near(monkeypatch):
    """Almost nothing is found without the block index."""
    monkeypatch.setattr(listing, "REACH", 2)


@pytest.fixture(scope="module")
def crowded():
    """Five rare jobs behind 30,000 that were added an hour later; tests only read them."""
    make = partial(PostgresStore, shared_url(), namespace=f"t{uuid4().hex[:20]}")
    with opened(make) as store:
        rare = add(store, *[a_job(queue="rare", task="rare.one") for _ in range(5)])
        fill(store, 30_000, now=T0 + HOUR)
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        connection.execute("ANALYZE")
    yield make, rare
    drop_schema(make.keywords["namespace"])


class TestBounds:
    """A few jobs behind many newer ones; the server itself counts the rows that it reads."""

    @pytest.fixture
    def rows_read(self, sql):
        def counted(namespace):
            wait_until_reported(sql)
            query = (
                "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_user_tables "
                f"WHERE schemaname = '{namespace}'"
            )
            return int(sql(query).fetchone()[0])

        return counted

    @pytest.mark.parametrize(
        "where",
        [
            JobFilter(queue="rare"),
            JobFilter(queue="nowhere"),
            JobFilter(task="rare.one"),
            JobFilter(task="rare.*"),
            JobFilter(task="nowhere.*"),
            JobFilter(queue="rare", task="rare.*"),
            JobFilter(queue="default", task="nowhere"),
            JobFilter(queue="rare", states=(State.QUEUED,)),
            JobFilter(task="rare.one", states=(State.QUEUED,)),
            JobFilter(task="rare.*", states=(State.QUEUED, State.SUCCEEDED)),
        ],
        ids=str,
    )
    def test_a_list_looks_only_where_there_may_be_some(self, crowded, rows_read, where):
        make, rare = crowded
        before = rows_read(make.keywords["namespace"])
        with opened(make) as store:
            found = ids(store.list_jobs(where).items)
        assert found == (rare[::-1] if "rare" in {where.queue, *(where.task or "").split(".")[:1]} else [])
        assert rows_read(make.keywords["namespace"]) - before < 3 * (listing.REACH + BLOCK)

    @pytest.mark.parametrize(
        "where",
        [
            JobFilter(until=T0 + 1),
            JobFilter(since=T0, until=T0 + 1),
            JobFilter(until=T0 + 1, states=(State.QUEUED,)),
            JobFilter(until=T0 + 1, task="rare.*"),
            JobFilter(until=T0),
            JobFilter(since=T0 + DAY),
        ],
        ids=str,
    )
    def test_a_list_by_time_looks_only_at_that_time(self, crowded, rows_read, where):
        make, rare = crowded
        before = rows_read(make.keywords["namespace"])
        with opened(make) as store:
            found = ids(store.list_jobs(where).items)
            number = store.count_jobs(where)
        assert found == (rare[::-1] if where.until == T0 + 1 else [])
        assert number == len(found)
        assert rows_read(make.keywords["namespace"]) - before < 4 * (listing.REACH + BLOCK)

    @pytest.mark.usefixtures("near")
    def test_few_failures_are_found_without_the_other_jobs_of_their_blocks(self, make_store, namespace, rows_read, sql):
        with opened(make_store) as store:
            fill(store, 10_000, task="often")
            for job in claim(store, 30):
                fail(store, job)
        sql("ANALYZE")
        before = rows_read(namespace)
        with opened(make_store) as store:
            assert store.count_jobs(JobFilter(task="often", states=(State.FAILED,))) == 30
        assert rows_read(namespace) - before < 1_000

    def test_waiting_jobs_of_a_task_are_found_without_those_that_ended(self, make_store, namespace, rows_read, sql):
        with opened(make_store) as store:
            fill(store, 30_000, task="often")
            while claimed := claim(store, 5_000):
                ends = [settle(job, Succeeded(), a_policy(0), T0, 0.0) for job in claimed]
                store.exchange(Exchange(holder=WORKER, settled=ends), now=T0)
            fill(store, 3_000, task="newer")
            waiting = fill(store, 10, task="often")
            fill(store, 3_000, task="newer")
        sql("ANALYZE")
        where = JobFilter(task="often", states=(State.QUEUED,))
        before = rows_read(namespace)
        with opened(make_store) as store:
            assert store.count_jobs(where) == 10
            assert ids(store.list_jobs(where).items) == waiting[::-1]
        assert rows_read(namespace) - before < 20_000

    def test_a_state_is_read_from_the_cursor_on(self, crowded, rows_read):
        make, _rare = crowded
        before = rows_read(make.keywords["namespace"])
        with opened(make) as store:
            store.list_jobs(JobFilter(states=(State.QUEUED,)), cursor="100")
        assert rows_read(make.keywords["namespace"]) - before < 1_000


@pytest.mark.usefixtures("near")
class TestEveryWayIn:
    """However a job was added, the block index has its queue, task and time."""

    @pytest.fixture(autouse=True)
    def newer(self, store):
        """Others come after it, so that the newest are not enough."""
        yield
        add(store, *[a_job(task="newer", queue="newer") for _ in range(5)])
        for where in (JobFilter(queue="mine"), JobFilter(task="mine"), JobFilter(queue="mine", task="min*")):
            assert shown(store, where) == kept(store, "mine")
        for at in {job.created_at for job in all_jobs(store)}:
            mine = [job.id for job in all_jobs(store) if job.created_at == at]
            assert shown(store, JobFilter(since=at, until=at + 1)) == mine
        for state in State:
            where = JobFilter(states=(state, State.HELD), task="mine")
            assert shown(store, where) == kept(store, "mine", {state, State.HELD})

    def test_one_at_a_time(self, store):
        for _ in range(3):
            add_job(store, queue="mine", task="mine")

    def test_of_many_kinds_by_turns(self, store):
        for number in range(30):
            kind = ("mine", "other", "third")[number % 3]
            add_job(store, queue=kind, task=kind)

    def test_in_bulk(self, store):
        add(store, *[a_job(queue="mine", task="mine") for _ in range(2 * BLOCK + 5)])

    @pytest.mark.parametrize("offset", [0, 1, BLOCK - 2, BLOCK - 1])
    def test_in_bulk_among_others(self, store, offset):
        add(store, *[a_job() for _ in range(offset)])
        jobs = [a_job() for _ in range(2 * BLOCK + 5)]
        for place in (0, BLOCK - 3, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK + 4):
            jobs[place] = a_job(queue="mine", task="mine")
        add(store, *jobs)
        add(store, a_job(), a_job(queue="mine", task="mine"), a_job())

    def test_later_or_behind_another_or_with_a_key(self, store):
        first = add_job(store, queue="mine", task="mine", delay=HOUR)
        add_job(store, queue="mine", task="mine", waits_for=first)
        add_job(store, queue="mine", task="mine", key="k")
        add(store, *[a_job(queue="mine", task="mine", key=f"k{number}") for number in range(30)])

    def test_by_a_schedule(self, store):
        names = [f"s{number}" for number in range(40)]
        store.edit_schedules([new_schedule(name, queue="mine", task="mine") for name in names], now=T0)
        assert sum(len(fired.jobs) for fired in fire_due(store, now=T0 + MINUTE)) == 40

    def test_in_the_callers_transaction(self, store):
        with psycopg.connect(shared_url()) as connection:
            store.add_jobs_in(connection, [a_job(queue="mine", task="mine")])

    def test_from_another_store(self, store, make_store, namespace):
        del make_store, namespace
        add(store, *[a_job(queue="mine", task="mine") for _ in range(30)])
        jobs = store.dump("jobs").items
        for job in claim(store, 30, queues=("mine",)):
            succeed(store, job)
        assert len(store.delete_jobs(ids(jobs))) == 30
        assert store.load(jobs) == 30

    def test_while_others_draw_positions(self, store, make_store):
        with opened(make_store) as rival:
            for number in range(20):
                add(store, *[a_job(queue="mine", task="mine") for _ in range(70)])
                add(rival, *[a_job(task=f"t{number}") for _ in range(70)])


def shown(store, where):
    return ids(all_jobs(store, where, page=50))


def kept(store, kind, states=frozenset(State)):
    return [job.id for job in all_jobs(store) if job.queue == job.task == kind and job.state in states]


class TestWaiting:
    def test_nobody_waits_for_the_index_entries_of_an_open_transaction(self, store):
        with closing(psycopg.connect(shared_url())) as connection:
            store.add_jobs_in(connection, [a_job(queue="mine", task="mine")])
            add_job(store, queue="mine", task="mine")
            add(store, *[a_job(queue="mine", task="mine") for _ in range(30)])
            add_job(store, queue="mine", task="mine", key="k")
            connection.commit()
        assert len(shown(store, JobFilter(queue="mine"))) == 33

    @pytest.mark.usefixtures("near")
    def test_a_transaction_that_is_rolled_back_takes_no_entry_away(self, store):
        with closing(psycopg.connect(shared_url())) as connection:
            store.add_jobs_in(connection, [a_job(queue="mine", task="mine")])
            mine = add_job(store, queue="mine", task="mine")
            connection.rollback()
        add(store, *[a_job() for _ in range(5)])
        assert shown(store, JobFilter(task="mine")) == [mine]


class TestPruning:
    """Entries without a job are deleted, but not while a job may still be added to their block."""

    @pytest.fixture
    def indexed(self, namespace, sql):
        def blocks(task="noop"):
            query = f"SELECT DISTINCT block FROM {namespace}.block_index WHERE task = '{task}' ORDER BY block"
            return [block for (block,) in sql(query).fetchall()]

        return blocks

    def test_what_is_gone_has_no_entry(self, store, indexed):
        end_all(store, 3 * BLOCK, task="gone")
        fill(store, BLOCK // 2, task="stays")
        assert indexed("gone") == [0, 1, 2, 3]
        prune(store)
        assert indexed("gone") == [3]  # where more may come
        assert indexed("stays") == [3]

    def test_a_block_with_another_job_loses_only_the_entry_of_what_is_gone(self, store, indexed):
        stays = add_job(store, task="stays", queue="q")
        end_all(store, BLOCK, task="gone")
        fill(store, BLOCK)
        prune(store)
        assert (indexed("gone"), indexed("stays")) == ([], [0])
        assert shown(store, JobFilter(task="stays")) == [stays]

    @pytest.mark.usefixtures("near")
    def test_a_job_that_comes_late_is_not_left_without_an_entry(self, store, indexed):
        with closing(psycopg.connect(shared_url())) as connection:
            end_all(store, 1, task="mine")
            late = a_job(task="mine")
            store.add_jobs_in(connection, [late])
            fill(store, 2 * BLOCK)
            prune(store)
            connection.commit()
        assert shown(store, JobFilter(task="mine")) == [late.id]
        assert indexed("mine") == [0]

    def test_progress_of_another_server_does_not_last(self, store, indexed, namespace, sql):
        sql(f"UPDATE {namespace}.block_index_upkeep SET coming = 7, since = '999999999999'")
        end_all(store, 2 * BLOCK, task="gone")
        fill(store, BLOCK)
        prune(store)
        assert indexed("gone") == []


def end_all(store, number, **values):
    fill(store, number, **values)
    while jobs := claim(store, 1_000):
        for job in jobs:
            succeed(store, job)


def prune(store):
    """As often as it takes, and some."""
    while store.prune(Retention(succeeded_for=DAY), 5_000, now=T0 + DAY).total:
        pass
    for _ in range(4):
        store.prune(Retention(succeeded_for=DAY), 5_000, now=T0 + DAY)


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("where", [JobFilter(), JobFilter(task="t")])
def test_states_that_reach_back_differently_leave_nothing_out(store, where):
    """The newest ended jobs are all cancelled: no success is among them, but failures are read further back."""
    made = add(store, *[a_job(task="t") for _ in range(8)])
    for number, job in enumerate(claim(store, 8)):
        (succeed if number % 2 else fail)(store, job)
    for _ in range(4):
        cancelled_job(store, task="t")
    wanted = msgspec.structs.replace(where, states=(State.SUCCEEDED, State.FAILED))
    found, cursor = [], None
    while True:
        page = store.list_jobs(wanted, cursor=cursor, limit=1)
        found += ids(page.items)
        cursor = page.cursor
        if cursor is None:
            break
    assert found == made[::-1]
