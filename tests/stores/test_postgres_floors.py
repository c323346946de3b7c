"""Floors of PostgreSQL's claims: dead entries are not read again and again, and no job below a floor is overlooked."""
# ruff: noqa: S608 - the names in the statements are the tests' own

from __future__ import annotations

import json
from random import Random

import psycopg
import pytest

from rota.model.jobs.outcome import Returned
from rota.model.jobs.settle import claim_order
from rota.testing.servers.postgres import shared_url
from rota.testing.store_suite.builders import T0, a_job
from rota.testing.store_suite.steps import add, add_job, claim, ids, read, settle_job, succeed
from stores.postgres_stage import *  # noqa: F403 - its fixtures


@pytest.fixture
def floored(store, namespace, sql):
    """A store whose claims use floors however few rows are dead."""
    sql(
        f"CREATE OR REPLACE FUNCTION {namespace}.has_many_dead() RETURNS boolean "
        "LANGUAGE plpgsql STABLE AS 'BEGIN RETURN true; END'"
    )
    return store


def floors(store):
    """Of each queue and rank the floor that the store's session has."""
    ((kept,),) = store._database.call(lambda tx: tx.rows("SELECT current_setting('rota.claim_floors', true)"))
    return {(one["queue"], one["rank"]): one["floor"] for one in json.loads(kept or '{"floors": []}')["floors"]}


def drained(store, number, *, times=4, queues=("default",)):
    """Jobs claimed by several calls, after which there is a floor."""
    return [job for _ in range(times) for job in claim(store, number, queues=queues)]


def test_a_claim_does_not_read_what_is_dead_but_held_back(floored, namespace, sql):
    add(floored, *(a_job() for _ in range(2_000)))
    with psycopg.connect(shared_url()) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute(f"SELECT count(*) FROM {namespace}.entry")
        drained(floored, 100, times=15)
        before = entries_read(floored, namespace, sql)
        assert len(drained(floored, 100, times=4)) == 400
        assert entries_read(floored, namespace, sql) - before < 4 * 1_500


def test_a_job_that_comes_back_below_the_floor_is_first(floored):
    add(floored, *(a_job() for _ in range(60)))
    first, *_ = drained(floored, 10)
    assert floors(floored)["default", 0] > first.seq
    settle_job(floored, first, Returned())
    assert ids(claim(floored, 1)) == [first.id]


def test_an_ended_job_that_is_added_to_its_queue_by_hand_is_first(floored, namespace, sql):
    add(floored, *(a_job() for _ in range(60)))
    first, *_ = drained(floored, 10)
    succeed(floored, first)
    sql(f"DELETE FROM {namespace}.finished WHERE seq = {first.seq}")
    sql(f"INSERT INTO {namespace}.ready (seq, run_at, rank, queue) VALUES ({first.seq}, {T0}, 0, 'default')")
    assert ids(claim(floored, 1)) == [first.id]
    succeed(floored, claim(floored, 1)[0])
    sql(f"UPDATE {namespace}.counter SET queued = queued + 1, succeeded = succeeded - 1")


@pytest.mark.parametrize("queues", [("default",), ("default", "other")])
def test_a_transaction_that_commits_late_is_not_overlooked(floored, namespace, queues):
    add(floored, *(a_job() for _ in range(40)))
    drained(floored, 5, queues=queues)
    with psycopg.connect(shared_url()) as late:
        added = f"SELECT {namespace}.add_job({T0}, 999, 'late', 'mail.send', '[]', 'default', 0::smallint, NULL, '')"
        late.execute(added)
        add(floored, *(a_job() for _ in range(60)))
        assert len(drained(floored, 10, times=7, queues=queues)) == 70
        late.commit()
    position = read(floored, "late").seq
    assert 0 < floors(floored)["default", 0] <= position
    assert ids(claim(floored, 1, queues=queues)) == ["late"]
    drained(floored, 5, queues=queues)
    assert floors(floored)["default", 0] > position


@pytest.mark.parametrize("queues", [("default",), ("default", "other")])
def test_jobs_that_another_worker_gives_up_are_not_overlooked(floored, namespace, queues):
    made = add(floored, *(a_job() for _ in range(80)))
    with psycopg.connect(shared_url()) as rival:
        locked = f"SELECT seq FROM {namespace}.ready ORDER BY seq LIMIT 10 FOR UPDATE"
        assert len(rival.execute(locked).fetchall()) == 10
        assert ids(drained(floored, 10, queues=queues)) == made[10:50]
        rival.rollback()
    assert ids(claim(floored, 12, queues=queues)) == [*made[:10], *made[50:52]]


def test_floors_end_when_positions_begin_again(floored, namespace, sql):
    add(floored, *(a_job() for _ in range(40)))
    for job in drained(floored, 10):
        succeed(floored, job)
    sql(f"DELETE FROM {namespace}.job; DELETE FROM {namespace}.finished; DELETE FROM {namespace}.counter")
    sql(f"SELECT setval('{namespace}.job_seq_seq', 1, false)")
    job_id = add_job(floored)
    assert ids(claim(floored, 1)) == [job_id]


@pytest.mark.parametrize("seed", range(4))
def test_every_claim_takes_the_best_jobs_in_order(floored, seed):
    random = Random(seed)
    queues = ("a",) if seed % 2 else ("a", "b", "c")
    ready, running = {}, {}
    for _ in range(120):
        match random.choice(("add", "add", "claim", "claim", "claim", "return", "end")):
            case "add":
                new = [a_job(queue=random.choice(queues), priority=random.choice((0, 0, 0, 5))) for _ in range(8)]
                add(floored, *new[: random.randint(1, 8)])
                known = ready.keys() | running.keys()
                ready |= {job.id: job for job in floored.get_jobs([job.id for job in new]) if job.id not in known}
            case "claim":
                want = random.randint(1, 9)
                claimed = claim(floored, want, queues=queues)
                assert ids(claimed) == ids(sorted(ready.values(), key=claim_order)[:want])
                running |= {job.id: job for job in claimed}
                ready = {job_id: job for job_id, job in ready.items() if job_id not in running}
            case "return" if running:
                job = running.pop(random.choice(sorted(running)))
                settle_job(floored, job, Returned())
                ready[job.id] = job
            case "end" if running:
                succeed(floored, running.pop(random.choice(sorted(running))))
    assert max(floors(floored).values()) > 50


def entries_read(store, namespace, sql):
    """What the store's session has read from the queue's index; it sends its numbers with the next statement."""
    store._database.call(lambda tx: tx.rows("SELECT pg_stat_force_next_flush()"))
    store.now()
    query = f"SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '{namespace}' AND relname = 'ready'"
    return sql(query).fetchone()[0]
