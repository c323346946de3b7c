"""Queues of documents that start and end with an app's node, and the verbs of `app.documents`."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading

import pytest

from documents.queue_stage import ago, document, wait_for
from rota import App
from rota.documents import DocumentQueue, MemorySource
from rota.errors import BadOption, DocumentNotFound, DocumentQueueNotFound, Refused


@pytest.fixture
def app(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = App("memory://")
    yield app
    app.close()


@pytest.fixture
def shop(app, tmp_path, monkeypatch):  # noqa: ARG001 - the app reads its folder
    """A module with a source and a handler, and a file that declares a queue of them."""
    module = type(sys)("shop")
    module.seen = []
    module.orders = MemorySource([document(1), document(2, late=-9_999)], name="orders")
    module.remind = lambda one: module.seen.append(one["_id"])
    monkeypatch.setitem(sys.modules, "shop", module)
    declare(tmp_path, "reminders: {source: 'shop:orders', handler: 'shop:remind'}")
    return module


def declare(folder, *queues):
    (folder / "rota.yaml").write_text("documents:\n" + "".join(f"  {one}\n" for one in queues))


class TestRunning:
    """A node runs the queues that are declared, and ends them."""

    def test_a_queue_of_the_file_runs_while_the_app_runs(self, app, shop):
        with app.running():
            wait_for(lambda: shop.orders.documents[0]["sleepUntil"] is None)
            (queue,) = app._wiring.node.companions[0].queues
            assert queue.is_running
        assert shop.seen == [1]
        assert not queue.is_running

    def test_a_queue_of_code_runs_while_the_app_runs_and_again(self, app):
        source = MemorySource([document(1)])
        queue = DocumentQueue(source, lambda _: None, name="bills", app=app)
        for _ in range(2):
            source.documents[0]["sleepUntil"] = ago(5)
            with app.running():
                wait_for(lambda: source.documents[0]["sleepUntil"] is None)
            assert not queue.is_running

    def test_an_async_block_runs_them_too(self, app, shop):
        async def main():
            async with app.running():
                await asyncio.to_thread(wait_for, lambda: shop.seen == [1])

        asyncio.run(main())

    @pytest.mark.parametrize("options", [{"documents": False}, {"worker": False}, {"scheduler": False}])
    def test_they_can_be_left_out_and_a_node_with_one_duty_has_none(self, app, shop, options):
        with app.running(**options) as node:
            assert node.companions == []
        assert shop.seen == []

    def test_a_node_with_one_duty_runs_them_if_that_is_said(self, app, shop):
        with app.running(scheduler=False, documents=True):
            wait_for(lambda: shop.seen == [1])

    def test_the_end_waits_for_handlers(self, app, shop):
        began, may_end = threading.Event(), threading.Event()
        shop.remind = lambda _: (began.set(), may_end.wait(60))
        node = app.start()
        assert began.wait(60)
        assert node.running == 1
        stopping = threading.Thread(target=app.stop)
        stopping.start()
        (queue,) = node.companions[0].queues
        wait_for(lambda: queue._feeder.is_stopping)
        assert stopping.is_alive()
        may_end.set()
        stopping.join(60)
        assert shop.orders.documents[0]["sleepUntil"] is None

    def test_a_second_signal_does_not_wait(self, app, shop):
        began, may_end = threading.Event(), threading.Event()
        shop.remind = lambda _: (began.set(), may_end.wait(60))
        node = app.start()
        assert began.wait(60)
        node.stop_now()
        app.stop()  # the drain would be 25 s, and the handler ends after that
        assert not may_end.is_set()
        assert shop.orders.documents[0]["sleepUntil"] is not None
        may_end.set()

    def test_a_queue_that_its_code_runs_is_left_alone(self, app):
        source = MemorySource([])
        with DocumentQueue(source, print, name="bills", app=app) as queue:
            with app.running() as node:
                assert node.companions[0].queues == []
                with pytest.raises(Refused, match="runs already; a queue with app= is started with its app"):
                    queue.start()
            assert queue.is_running


class TestFailures:
    """A queue that cannot start says why, and takes nothing else down."""

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ("{source: 'shop:orders', handler: 'shop:nobody'}", "rota.yaml:2: documents.bad.handler: the module shop"),
            ("{source: 'nowhere:x', handler: 'shop:remind'}", "documents.bad.source: nowhere cannot be imported"),
            ("{source: 'ftp://x', collection: c, handler: 'shop:remind'}", "documents.bad.source: no source of docum"),
        ],
    )
    def test_the_others_run_and_the_reason_is_logged(self, app, shop, tmp_path, caplog, said, words):
        declare(tmp_path, f"bad: {said}", "reminders: {source: 'shop:orders', handler: 'shop:remind'}")
        with caplog.at_level(logging.ERROR, "rota.documents"), app.running():
            wait_for(lambda: shop.seen == [1])
        (line,) = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
        assert line.startswith("the queue of documents bad does not run: ")
        assert words in line
        assert line.endswith("see `rota documents check bad`")

    def test_an_error_of_on_start_is_one_of_them(self, app, caplog):
        def refuse(_queue):
            raise ValueError("no mail server")

        DocumentQueue(MemorySource([]), print, name="bills", on_start=refuse, app=app)
        with caplog.at_level(logging.ERROR, "rota.documents"), app.running() as node:
            assert node.companions[0].queues == []
        assert "bills does not run: ValueError: no mail server" in caplog.text

    def test_a_file_that_is_missing_is_told_by_the_queue_and_the_node_runs(self, app, shop, tmp_path, caplog):
        declare(tmp_path, "bills: {source: 'sqlite:///none.db', collection: bills, handler: 'shop:remind'}")
        with app.running() as node:
            wait_for(lambda: "unable to open" in caplog.text)
            assert node.is_healthy
        assert not (tmp_path / "none.db").exists()
        assert shop.seen == []


class TestVerbs:
    """app.documents has what the CLI and HTTP have."""

    def test_queues_are_listed_with_their_documents_by_state(self, app, shop):
        DocumentQueue(shop.orders, print, name="bills", app=app)
        bills, reminders = app.documents.queues()
        assert (bills.name, bills.origin) == ("bills", "code")
        assert (reminders.name, reminders.origin, reminders.handler) == ("reminders", "rota.yaml:2", "shop:remind")
        assert reminders.states == {"waiting": 1, "due": 1, "running": 0, "retrying": 0, "done": 0}

    @pytest.mark.usefixtures("shop")
    def test_documents_are_listed_and_shown(self, app):
        assert [(one.id, one.state) for one in app.documents.list("reminders")] == [("1", "due"), ("2", "waiting")]
        assert [one.id for one in app.documents.list("reminders", state="waiting")] == ["2"]
        assert [one.id for one in app.documents.list("reminders", limit=1)] == ["1"]
        assert app.documents.get("reminders", 2).state == "waiting"
        assert app.documents.get("reminders", "2").sleep_until is not None

    @pytest.mark.usefixtures("shop")
    def test_a_document_is_explained(self, app):
        why = app.documents.why("reminders", 2)
        assert (why.code, why.state) == ("waiting", "waiting")
        assert asyncio.run(app.aio.documents.why("reminders", "1")).code == "due"

    @pytest.mark.usefixtures("shop")
    def test_what_does_not_exist_is_refused_with_what_there_is(self, app):
        with pytest.raises(DocumentQueueNotFound, match="no queue of documents is named 'x'; there are reminders"):
            app.documents.list("x")
        with pytest.raises(DocumentNotFound, match="'7'"):
            app.documents.get("reminders", "7")
        with pytest.raises(BadOption, match="state='late'"):
            app.documents.list("reminders", state="late")
        with pytest.raises(BadOption, match="limit=0"):
            app.documents.list("reminders", limit=0)

    def test_a_check_tells_what_cannot_be_imported_or_reached(self, app, shop, tmp_path):
        declare(
            tmp_path,
            "both: {source: 'nowhere:x', handler: 'shop:nobody'}",
            "away: {source: 'sqlite:///none.db', collection: bills, handler: 'nowhere:x'}",
        )
        source, handler = app.documents.check("both")
        assert (source.kind, handler.kind) == ("no-source", "no-handler")
        assert source.message.startswith("rota.yaml:2: documents.both.source: nowhere cannot be imported")
        assert "documents.both.handler: the module shop has no 'nobody'" in handler.message
        assert "`rota documents check`" in source.command
        assert "module:name" in handler.command
        (reached,) = app.documents.check("away", handler=False)
        assert (reached.kind, reached.is_error) == ("unreachable", True)
        assert "none.db" in reached.message
        assert [one.kind for one in app.documents.check("away")] == ["no-handler", "unreachable"]
        assert [bool(one.error) for one in app.documents.queues()] == [True, True]
        assert shop.seen == []


def test_on_stop_has_run_when_the_end_is_told():
    """has_ended is set after on_stop: who waits for the end finds what the hook did."""
    order, may_end = [], threading.Event()
    queue = DocumentQueue(MemorySource([]), print, on_stop=lambda: (may_end.wait(60), order.append("on_stop")))
    queue.start()
    queue.ask_to_stop()
    assert not queue.wait(0.05)
    assert queue.is_running
    may_end.set()
    assert queue.wait("60s")
    assert order == ["on_stop"]
    assert not queue.is_running


def test_a_hook_that_waits_for_its_own_queue_does_not_hang():
    answers = []
    queue = DocumentQueue(MemorySource([]), print, on_stop=lambda one: answers.append((one.wait(), one.stop())))
    with queue:
        pass
    assert answers == [(False, False)]
