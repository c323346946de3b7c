"""Jobs that Redis claims for an idle worker when they are added: messages that are lost or late, and other versions."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
import redis
from redis.connection import AbstractConnection

from rota import App
from rota.app import internals
from rota.engine.node import Node
from rota.engine.services import NodeSettings
from rota.errors import StoreUnavailable
from rota.model.jobs.job import State
from rota.store.redis import RedisStore
from rota.store.redis.fast.direct_claims import DirectClaims
from rota.testing.store_suite.builders import LEASE, RIVAL, T0, WORKER, a_job
from rota.testing.store_suite.notify import PATIENCE, claim_idle, listener_on
from rota.testing.store_suite.steps import add, add_job, claim, ids, read, succeed
from stores.redis_stage import *  # noqa: F403 - its fixtures


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """An idle worker stays registered, however busy the machine is."""
    monkeypatch.setattr("rota.store.redis.exchange.WAITS_FOR", 3_600_000_000)


@pytest.fixture
def listener(store):
    with listener_on(store, "jobs") as opened:
        yield opened


def scripts_run(raw):
    stats = raw.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def held_back(monkeypatch):
    """The messages that arrive from now on. The test delivers them, or loses them."""
    messages, arrived = [], threading.Event()

    def keep(_self, message):
        messages.append(message)
        arrived.set()

    monkeypatch.setattr(DirectClaims, "receive", keep)
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
    receive = DirectClaims.receive
    messages, arrived = held_back(monkeypatch)
    claim_idle(store)
    job_id = add_job(store)
    assert arrived.wait(PATIENCE)
    assert ids(claim_idle(store)) == [job_id]
    monkeypatch.undo()
    receive(store._direct_claims, messages[0])
    assert claim_idle(store, listener) == claim_idle(store) == []


@pytest.mark.usefixtures("listener")
def test_a_lost_message_leaves_room_for_its_job(store, monkeypatch):
    """The exchange that returns it claims one less."""
    _, arrived = held_back(monkeypatch)
    claim_idle(store, want=2)
    added = [add_job(store) for _ in range(3)]
    assert arrived.wait(PATIENCE)
    assert ids(claim_idle(store, want=2)) == added[:2]


@pytest.mark.usefixtures("listener")
def test_a_job_whose_message_is_lost_began_when_the_store_says_so(store, monkeypatch):
    _, arrived = held_back(monkeypatch)
    claim_idle(store)
    job_id = add_job(store)
    assert arrived.wait(PATIENCE)
    (job,) = claim_idle(store, now=T0 + LEASE // 2)
    assert job.started_at == read(store, job_id).started_at == T0


@pytest.mark.usefixtures("listener")
def test_workers_that_died_while_they_were_idle_are_forgotten(store, raw, monkeypatch):
    monkeypatch.setattr("rota.store.redis.exchange.WAITS_FOR", LEASE)
    for number in range(30):
        claim_idle(store, holder=f"dead-{number}")
    waiting = f"{store._connection.prefix}waiting"
    raw.persist(waiting)
    raw.persist(f"{waiting}:default")
    for _ in range(2_000):  # each looks at one, by chance
        claim_idle(store, now=T0 + 2 * LEASE)
        if raw.scard(f"{waiting}:default") == 1:
            break
    assert raw.smembers(f"{waiting}:default") == {WORKER.encode()}
    assert list(raw.hgetall(waiting)) == [WORKER.encode()]


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


def test_a_worker_that_was_idle_long_ago_gets_nothing(store, listener, monkeypatch):
    monkeypatch.setattr("rota.store.redis.exchange.WAITS_FOR", LEASE - 1)
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


def idle_worker(server):
    """An app, and a worker of it that waits for a job; only the test turns its loop."""
    app = App(server.url(), namespace=f"t{uuid4().hex[:24]}")
    inside = internals(app)
    worker = Node(app.open(), inside.registry, inside.events, NodeSettings(scheduler=False)).worker
    while not worker.is_idle.is_set() or worker._listener is None:
        worker.turn()
    worker.turn()  # which registers it
    return app, worker


def test_a_worker_that_drains_returns_the_job(server):
    app, worker = idle_worker(server)
    worker.drain()
    job = app.task(name="greet")(lambda: None).enqueue()
    while not worker.drained.is_set():
        worker.turn()
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "queued"]
    worker.close()
    app.close()


def test_a_job_starts_before_the_loop_of_its_worker_turns(server):
    app, worker = idle_worker(server)
    started = threading.Event()
    job = app.task(name="greet")(started.set).enqueue()
    assert started.wait(PATIENCE)
    while worker.runs:
        assert worker._event.wait(PATIENCE)
        worker.turn()
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "succeeded"]
    worker.close()
    app.close()


def test_a_worker_is_not_drained_while_a_job_is_being_started(server, monkeypatch):
    app, worker = idle_worker(server)
    taken, gate = threading.Event(), threading.Event()
    dispatch = worker.dispatch

    def held(*jobs, **options) -> None:
        taken.set()
        assert gate.wait(PATIENCE)
        dispatch(*jobs, **options)

    with monkeypatch.context() as patched:
        patched.setattr(worker, "dispatch", held)
        job = app.task(name="greet")(lambda: None).enqueue()
        assert taken.wait(PATIENCE)
    worker.drain()
    drain = threading.Thread(target=worker.turn)
    drain.start()
    assert not worker.drained.wait(0.2)
    gate.set()
    drain.join(PATIENCE)
    while not worker.drained.is_set():
        worker.turn()
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "queued"]
    worker.close()
    app.close()


def test_a_job_that_cannot_be_started_stops_no_other(server, monkeypatch, caplog):
    """The listener goes on, and the lease of the job expires."""
    app, worker = idle_worker(server)
    started = threading.Event()
    greet = app.task(name="greet")(started.set)
    with monkeypatch.context() as patched:
        failed = threading.Event()
        patched.setattr(worker, "dispatch", lambda *_, **__: failed.set() or 1 / 0)
        greet.enqueue()
        assert failed.wait(PATIENCE)
    worker.turn()  # which registers it again
    greet.enqueue()
    assert started.wait(PATIENCE)
    assert "could not be started" in caplog.text
    worker.close()
    app.close()


def test_a_worker_waits_again_after_a_job_that_took_long(server, raw):
    app = App(server.url(), namespace=f"t{uuid4().hex[:24]}")
    gate = threading.Event()
    slow = app.task(name="slow")(lambda: gate.wait(PATIENCE))
    inside = internals(app)
    worker = Node(app.open(), inside.registry, inside.events, NodeSettings(scheduler=False)).worker
    while not worker.is_idle.is_set() or worker._listener is None:
        worker.turn()
    slow.enqueue()
    while not any(run.started for run in worker.runs.values()):
        worker.turn()
    worker.turn()
    waiting = f"{app.open()._connection.prefix}waiting"
    assert not raw.hexists(waiting, worker.holder)
    gate.set()
    while worker.runs:
        assert worker._event.wait(PATIENCE)
        worker.turn()
    assert raw.hexists(waiting, worker.holder)
    worker.close()
    app.close()


@pytest.mark.usefixtures("listener")
def test_a_worker_that_gets_a_job_waits_for_no_other(store, raw, monkeypatch):
    _, arrived = held_back(monkeypatch)
    claim_idle(store)
    add_job(store)
    assert arrived.wait(PATIENCE)
    assert len(claim_idle(store)) == 1
    assert not raw.hexists(f"{store._connection.prefix}waiting", WORKER)


def test_after_a_lost_message_jobs_become_ready_until_messages_arrive_again(store, listener, monkeypatch):
    with monkeypatch.context() as patched:
        _, arrived = held_back(patched)
        claim_idle(store)
        add_job(store)
        assert arrived.wait(PATIENCE)
        claim_idle(store)
    claim_idle(store)
    assert read(store, add_job(store)).state is State.QUEUED
    assert listener.wait(PATIENCE)
    assert len(claim_idle(store)) == 1
    claim_idle(store)
    assert read(store, add_job(store)).state is State.RUNNING


def test_an_exchange_that_fails_loses_no_job(store, listener, monkeypatch):
    _, arrived = held_back(monkeypatch)
    claim_idle(store)
    job_id = add_job(store)
    assert arrived.wait(PATIENCE)
    with monkeypatch.context() as patched:
        patched.setattr("rota.store.redis.exchange.Exchanged", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            claim_idle(store)
    assert listener.wait(PATIENCE)
    assert ids(claim_idle(store, listener)) == [job_id]
    assert claim_idle(store, listener) == []


def test_the_job_of_an_exchange_that_could_not_be_sent_is_there_for_the_next(store, listener, monkeypatch):
    claim_idle(store)
    job_id = add_job(store)
    assert listener.wait(PATIENCE)
    with monkeypatch.context() as patched:
        patched.setattr(store._connection, "_is_open", False)
        with pytest.raises(StoreUnavailable):
            claim_idle(store)
    assert ids(claim_idle(store, listener)) == [job_id]


def test_an_interrupted_call_leaves_its_answer_to_no_other(server, raw, monkeypatch):
    """A signal handler may raise between the two halves of a call."""
    store = RedisStore(server.url(), namespace=f"t{uuid4().hex[:24]}")
    store.open()
    first = add_job(store)
    send = AbstractConnection.send_command

    def interrupted(connection, *parts, **options):
        send(connection, *parts, **options)
        raise KeyboardInterrupt

    raw.client_pause(200)  # the answer has not come when the connection is returned
    with monkeypatch.context() as patched:
        patched.setattr(AbstractConnection, "send_command", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.now()
    assert read(store, first).id == first
    store.close()


LESS_RIGHTS = [
    "+@all resetchannels &*:notify:jobs &*:notify:schedules",
    "+@all -@set",
    "+@all -set",
    "+@all -getdel",
    "-@all +@hash +@sortedset +@scripting +info +incr +incrby +publish +time +exists +del +unlink +@pubsub +ping",
]


@pytest.mark.parametrize("rules", LESS_RIGHTS)
def test_a_user_who_may_not_do_all_of_it_enqueues_and_claims_as_before(server, raw, store, listener, rules):
    """The server runs a script up to the command that its ACL forbids: what is written by then would stay."""
    claim_idle(store)
    user = f"u{uuid4().hex[:8]}"
    raw.execute_command("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", *rules.split())
    guest = RedisStore(server.url().replace("://", f"://{user}:secret@"), namespace=store.namespace)
    guest.open()
    with listener_on(guest, "jobs") as other:
        added = [add_job(guest), add_job(guest, key="only")]
        assert listener.wait(PATIENCE)
        claimed = [job for _ in added for job in claim_idle(store, listener)]
        assert sorted(ids(claimed)) == sorted(added)
        claim_idle(store, want=0)
        claim_idle(guest, holder=RIVAL)
        last = add_job(store)
        while not (claimed := claim_idle(guest, other, holder=RIVAL)):
            assert other.wait(PATIENCE)
        assert ids(claimed) == [last]
    guest.close()
    raw.execute_command("ACL", "DELUSER", user)
