"""Jobs that Redis claims for an idle worker when they are added: what the suite of all stores cannot see."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
import redis

from rota import App
from rota.app import internals
from rota.engine.node import Node
from rota.engine.services import NodeSettings
from rota.model.jobs.job import State
from rota.store.redis import RedisStore
from rota.store.redis.fast import kept_connections
from rota.store.redis.fast.handover import Handover
from rota.testing.store_suite.builders import LEASE, RIVAL, T0, WORKER, a_job
from rota.testing.store_suite.notify import PATIENCE, claim_idle, listener_on
from rota.testing.store_suite.steps import add, add_job, claim, ids, read, succeed
from stores.redis_stage import *  # noqa: F403 - its fixtures


@pytest.fixture
def listener(store):
    with listener_on(store, "jobs") as opened:
        yield opened


def scripts_run(raw):
    stats = raw.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def held_back(monkeypatch):
    """The messages that arrive from now on, which nobody reads until the test does."""
    messages, arrived = [], threading.Event()

    def keep(_self, message):
        messages.append(message)
        arrived.set()

    monkeypatch.setattr(Handover, "receive", keep)
    return messages, arrived


def test_a_single_job_reaches_an_idle_worker_without_a_call_of_its_own(store, raw, listener):
    add_job(store)
    assert listener.wait(PATIENCE)
    claim(store)  # the server knows the scripts now
    claim_idle(store)
    before = scripts_run(raw)
    job_id = add_job(store)
    assert listener.wait(PATIENCE)
    assert ids(claim_idle(store, listener)) == [job_id]
    assert scripts_run(raw) == before + 1  # the one that added it


@pytest.mark.usefixtures("listener")
def test_a_message_that_is_lost_loses_no_job(store, monkeypatch):
    _, arrived = held_back(monkeypatch)
    claim_idle(store)
    job_id = add_job(store)
    assert arrived.wait(PATIENCE)
    assert read(store, job_id).state is State.RUNNING
    assert ids(claim_idle(store)) == [job_id]
    assert claim_idle(store) == []


def test_a_message_that_comes_after_the_job_brings_no_second_one(store, listener, monkeypatch):
    receive = Handover.receive
    messages, arrived = held_back(monkeypatch)
    claim_idle(store)
    job_id = add_job(store)
    assert arrived.wait(PATIENCE)
    assert ids(claim_idle(store)) == [job_id]
    monkeypatch.undo()
    receive(store._handover, messages[0])
    assert listener.wait(PATIENCE)
    assert claim_idle(store, listener) == claim_idle(store) == []


@pytest.mark.usefixtures("listener")
def test_a_lost_message_leaves_room_for_its_job(store, monkeypatch):
    """The exchange that returns it claims one less."""
    _, arrived = held_back(monkeypatch)
    claim_idle(store, want=2)
    added = [add_job(store) for _ in range(3)]
    assert arrived.wait(PATIENCE)
    assert ids(claim_idle(store, want=2)) == added[:2]


def test_a_job_that_has_ended_is_not_returned_again(store, listener):
    claim_idle(store)
    add_job(store)
    assert listener.wait(PATIENCE)
    (job,) = claim_idle(store, listener)
    assert succeed(store, job) == []
    assert claim_idle(store) == []


@pytest.mark.usefixtures("listener")
def test_a_record_that_cannot_be_read_fails_by_the_exchange(store, raw, monkeypatch):
    _, arrived = held_back(monkeypatch)
    claim_idle(store)
    job_id = add_job(store)
    assert arrived.wait(PATIENCE)
    raw.hset(f"{store._connection.prefix}job", job_id, b"1|0|\x94nonsense")
    assert claim_idle(store) == []
    assert read(store, job_id).state is State.FAILED


def test_names_may_have_any_characters(store, listener):
    holder, queues = "a|b:1", ("mail", "default")
    claim_idle(store, holder=holder, queues=queues)
    (job_id,) = add(store, a_job(id="x|y|z", queue="mail"))
    assert listener.wait(PATIENCE)
    assert ids(claim_idle(store, holder=holder, queues=queues)) == [job_id]


def test_jobs_that_another_version_added_go_first(store, listener, raw):
    """It does not delete the entries of idle workers when it adds several."""
    claim_idle(store)
    waiting, entries = f"{store._connection.prefix}waiting", raw.hgetall(f"{store._connection.prefix}waiting")
    early = add(store, a_job(), a_job())
    raw.hset(waiting, mapping=entries)
    late = add_job(store)
    assert listener.wait(PATIENCE)
    assert ids(claim_idle(store)) == [*early, late]


def test_a_worker_that_was_idle_long_ago_gets_nothing(store, listener):
    claim_idle(store)
    job_id = add_job(store, now=T0 + LEASE)
    assert listener.wait(PATIENCE)
    assert ids(claim(store, holder=RIVAL, now=T0 + LEASE)) == [job_id]


def test_a_client_that_decodes_answers_works_as_before(server):
    with redis.Redis(port=server.port, decode_responses=True) as client:
        store = RedisStore(client, namespace=f"t{uuid4().hex[:24]}")
        store.open()
        with listener_on(store, "jobs") as listener:
            claim_idle(store)
            job_id = add_job(store)
            assert listener.wait(PATIENCE)
            assert read(store, job_id).state is State.QUEUED
            assert ids(claim_idle(store)) == [job_id]
        store.close()


def test_a_worker_that_drains_returns_the_job(server):
    app = App(server.url(), namespace=f"t{uuid4().hex[:24]}")

    @app.task(name="greet")
    def greet() -> None: ...

    inside = internals(app)
    worker = Node(app.open(), inside.registry, inside.events, NodeSettings(scheduler=False)).worker
    while not worker.is_idle.is_set() or worker._listener is None:
        worker.turn()
    worker.turn()  # which registers it
    worker.drain()
    job = greet.enqueue()
    while not worker.drained.is_set():
        worker.turn()
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "queued"]
    worker.close()
    app.close()


def test_a_server_that_closes_a_kept_connection_fails_no_later_call(store, raw, monkeypatch):
    """Connections that were idle for some time go through the pool, which opens new ones."""
    monkeypatch.setattr(kept_connections, "MOST_IDLE", 0)
    add_job(store)
    raw.client_kill_filter(_type="normal", skipme=True)
    add_job(store)
    assert len(claim(store, 5, holder=WORKER)) == 2
