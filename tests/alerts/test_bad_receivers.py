"""A receiver that hangs, ends its thread or drips bytes delays its own messages and those of no other one."""

from __future__ import annotations

import socket
import threading

import pytest

from alerts.test_channels import app, by_mail  # noqa: F401 - fixtures
from amounts import PATIENCE
from rota import every
from rota.alerts import mail
from rota.alerts.heartbeats import Pinger
from rota.alerts.sending_threads import SendingThreads
from rota.errors import AlertNotSent, StoreUnavailable
from rota.model.alerts.findings import AlertSnapshot, why_ended
from rota.model.alerts.incident import WATCH_KIND, Watch, pack
from rota.model.alerts.rule import make_rule
from rota.model.entry import EntryEdit

from alerts.test_life_of_an_alert import waiting_job  # isort: skip


class Gate:
    """A call that hangs until it is let through."""

    def __init__(self) -> None:
        self.is_open = threading.Event()

    def __call__(self, *_: object) -> None:
        assert self.is_open.wait(PATIENCE)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.is_open.set()


def test_a_receiver_that_hangs_delays_no_other_one(gate):
    threads = SendingThreads("test", each=2)
    for _ in range(50):
        threads.call("hangs", gate)
    done = threading.Event()
    threads.call("well", done.set)
    assert done.wait(PATIENCE)
    assert (threads.is_busy("hangs"), threads.unfinished("hangs"), threads.unfinished("well")) == (True, 50, 0)
    gate.is_open.set()
    assert threads.wait_until_idle(PATIENCE)


def test_calls_of_one_receiver_keep_their_order():
    threads = SendingThreads("test", each=1)
    came: list[int] = []
    for number in range(200):
        threads.call("one", lambda number=number: came.append(number))
    assert threads.wait_until_idle(PATIENCE)
    assert came == list(range(200))


def test_a_call_that_ends_its_thread_ends_no_other_call():
    def leave() -> None:
        raise SystemExit(1)

    threads = SendingThreads("test", each=1, threads=1)
    done = threading.Event()
    threads.call("a", leave)
    threads.call("a", done.set)
    assert done.wait(PATIENCE)


def test_a_function_that_exits_has_failed_to_take_the_message(app):  # noqa: F811
    @app.alerts.channel("pager")
    def page(_alert: object) -> None:
        raise SystemExit("no pager\x1b\x00")

    with pytest.raises(AlertNotSent, match=r"SystemExit: no pager\Z"):
        app.alerts.test("pager")


def test_a_node_whose_channel_hangs_leaves_its_messages_to_another_node(stage, gate):
    waiting_job(stage)
    first, second = stage.node("a"), stage.node("b")
    for _ in range(2):
        first.threads.call("pager", gate)
    first.turn()
    assert (stage.open_alerts(), stage.receiver.events) == (["mail"], [])
    stage.skip(20)
    second.turn()
    assert second.threads.wait_until_idle(PATIENCE)
    assert stage.receiver.events == [("pager", "raised", "mail")]


def test_a_heartbeat_url_that_hangs_delays_no_other_one(app, gate):  # noqa: F811
    called: list[str] = []

    class Client:
        def send(self, _method: str, url: str) -> int:
            if "hangs" in url:
                gate()
            called.append(url)
            return 200

    pinger = Pinger(app.alerts.plan, Client())
    for _ in range(200):
        pinger.ping("schedule a", "https://hangs.example.org/a")
    pinger.ping("this node", "https://well.example.org/")
    with pinger.threads._idle:
        assert pinger.threads._idle.wait_for(lambda: "https://well.example.org/" in called, PATIENCE)
    assert pinger.threads.unfinished("schedule a") == 100  # the rest was dropped and logged


def test_a_mail_server_that_drips_bytes_is_left(by_mail, monkeypatch):  # noqa: F811
    """It does so in its first line already; each byte comes in time."""
    monkeypatch.setattr(mail, "MESSAGE_FOR", 0.3)
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("ROTA_SMTP_PORT", str(listener.getsockname()[1]))
    is_over = threading.Event()

    def drip() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"220 ")
            while not is_over.wait(0.02):
                try:
                    peer.sendall(b"a")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(AlertNotSent, match="did not take the message"):
            by_mail.alerts.test("team")
    finally:
        is_over.set()
        thread.join(PATIENCE)
        listener.close()


def test_a_failure_is_found_again_if_the_store_fails_in_the_middle_of_a_check(stage, monkeypatch):
    """A run failed and the next one succeeded, so that nothing but the list of failures shows it."""
    outcomes = iter([True, False])

    @stage.app.schedule(every("1h"), id="flaky")
    @stage.app.task(name="t.flaky", retries=0)
    def flaky() -> None:
        if next(outcomes):
            raise ValueError("no")

    watch = pack(Watch(at=stage.store.now(), by="before"))
    stage.store.edit_entries([EntryEdit(kind=WATCH_KIND, name="shop", expect_version=0, data=watch)])
    with stage.app.running():  # without rules, so that this node does not check
        for _ in range(2):
            stage.app.jobs.wait(stage.app.schedules.run_now("flaky").id, PATIENCE)
    stage.app.alerts.add("all", when="fails")
    node = stage.node("a")
    stage.skip(20)

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as broken:
        broken.setattr(stage.store.store, "list_failures", fail, raising=False)
        with pytest.raises(StoreUnavailable):
            node.turn()
    stage.skip(20)
    stage.turn()
    assert stage.receiver.events == [("pager", "raised", "flaky")]
    for _ in range(2):
        stage.skip(20)
        stage.turn()
    assert stage.receiver.events == [("pager", "raised", "flaky"), ("pager", "recovered", "flaky")]


def test_an_alert_that_its_rule_is_no_longer_about_says_so():
    rule = make_rule("r", when="fails", schedule="backup")
    assert why_ended(rule, "nightly", AlertSnapshot(now=0)) == "The rule is no longer about schedule nightly."


def test_an_error_that_no_store_can_keep_is_kept_without_what_it_cannot_keep(stage):
    """Otherwise the try would not be recorded, and the message would be sent again without end."""
    waiting_job(stage)
    stage.receiver.send = refuse_badly
    stage.turn(stage.node("a"))
    (delivery,) = stage.app.alerts.list().items[0].deliveries
    assert (delivery.tries, len(delivery.error), delivery.error[:9]) == (1, 300, "no [31m  ")


def refuse_badly(*_: object) -> None:
    raise AlertNotSent("no\x1b[31m\ud800\x00" + "x" * 100_000 + "\nmore")
