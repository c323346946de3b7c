"""The life of a queue: its hooks, its handlers, and how it stops."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial

import pytest
from queue_stage import Flaky, a_queue, ago, document, run_until, wait_for

from rota import App
from rota.documents import MemorySource
from rota.documents.contract import Batch
from rota.engine.events import NAMES
from rota.errors import BadDocument, BadOption, Refused, StoreUnavailable
from rota.model.jobs.retry import backoff


def test_hooks_are_called_in_order_with_the_queue():
    heard = []
    queue = a_queue(
        [document(1), document(2, late=5)],
        lambda one, queue: heard.append(("document", one["_id"], queue)),
        on_start=lambda queue: heard.append(("start", queue)),
        on_idle=lambda queue: heard.append(("idle", queue)),
        on_stop=lambda queue: heard.append(("stop", queue)),
    )
    run_until(queue, lambda: queue.is_idle)
    assert heard == [
        ("start", queue), ("document", 1, queue), ("document", 2, queue), ("idle", queue), ("stop", queue),
    ]  # fmt: skip


def test_async_hooks_and_handlers_run_on_one_loop():
    heard, loops = [], set()

    def hook(what):
        async def call(*_offered):
            await asyncio.sleep(0)
            loops.add(asyncio.get_running_loop())
            heard.append(what)

        return call

    queue = a_queue([document()], hook("document"), on_start=hook("start"), on_idle=hook("idle"), on_stop=hook("stop"))
    run_until(queue, lambda: queue.is_idle)
    assert heard == ["start", "document", "idle", "stop"]
    assert len(loops) == 1


def test_async_documents_run_at_once():
    async def meet(one):
        arrived.add(one["_id"])
        if len(arrived) == 50:
            all_here.set()
        await all_here.wait()

    arrived, all_here = set(), asyncio.Event()
    queue = a_queue([document(number) for number in range(50)], meet, concurrency=50)
    run_until(queue, lambda: queue.is_idle)
    assert arrived == set(range(50))


def test_idle_is_told_once_per_idle_period():
    idle = []
    source = Flaky([document()])
    queue = a_queue([], source=source, on_idle=lambda: idle.append(len(source.documents)))
    with queue:
        wait_for(lambda: idle == [1])
        for _ in range(3):
            calls = source.calls
            queue.wake()
            wait_for(lambda calls=calls: source.calls > calls)
        source.documents.append(document(2))
        queue.wake()
        wait_for(lambda: idle == [1, 2])
    assert idle == [1, 2]


def test_an_idle_queue_asks_once_a_second_or_when_the_next_document_is_due():
    source = MemorySource([])
    queue = a_queue([], source=source, idle_delay="5s")
    feeder, _ = queue._make_services()
    assert feeder.turn() == 5.0
    source.documents.append(document(late=-3))
    assert 0 < feeder.turn() < 4
    source.documents.append(document(late=-60))
    with pytest.raises(BadOption, match="the least is '1s'"):
        a_queue([], idle_delay="0s")


def test_what_it_is_doing_can_be_asked():
    go_on, begun = threading.Event(), threading.Event()

    def work(_document):
        begun.set()
        go_on.wait()

    queue = a_queue([document()], work)
    assert (queue.is_running, queue.is_processing, queue.is_idle) == (False, False, False)
    with queue:
        begun.wait()
        assert (queue.is_running, queue.is_processing, queue.is_idle) == (True, True, False)
        go_on.set()
        wait_for(lambda: queue.is_idle)
        assert (queue.is_running, queue.is_processing) == (True, False)
    assert (queue.is_running, queue.is_processing, queue.is_idle) == (False, False, False)


def test_stopping_waits_for_what_runs():
    go_on, begun, ended = threading.Event(), threading.Event(), []

    def work(_document):
        begun.set()
        go_on.wait()
        ended.append(True)

    documents = [document(1), document(2, late=1)]
    queue = a_queue(documents, work, on_stop=lambda: ended.append("stop"))
    queue.start()
    begun.wait()
    assert not queue.stop(timeout=0.01)
    assert ended == []
    go_on.set()
    assert queue.stop()
    assert ended == [True, "stop"]
    assert [one["sleepUntil"] is None for one in documents] == [True, False]


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1), KeyboardInterrupt()])
def test_a_handler_that_raises_never_hangs_the_queue(error):
    def work(_document):
        raise error

    documents = [document()]
    errors = []
    queue = a_queue(documents, work, on_error=lambda *heard: errors.append(heard), backoff=backoff("1h"))
    run_until(queue, lambda: errors)
    assert errors == [(error, {**documents[0], **errors[0][1]}, queue)]
    assert documents[0]["sleepUntil"] > ago(0)
    assert "lockedUntil" not in documents[0]


def test_a_handler_may_stop_its_own_queue():
    def work(_document, queue):
        queue.stop()

    documents = [document(1), document(2, late=1)]
    queue = a_queue(documents, work)
    queue.start()
    assert queue.wait(60)
    assert [one["sleepUntil"] is None for one in documents] == [True, False]
    assert queue.stop()


def test_an_async_handler_may_stop_its_own_queue():
    async def work(_document, queue):
        queue.stop()

    queue = a_queue([document()], work)
    queue.start()
    assert queue.wait(60)
    assert queue.stop()


def test_a_stopped_queue_can_be_started_again():
    seen = []
    documents = [document(1)]
    queue = a_queue(documents, lambda one: seen.append(one["_id"]))
    run_until(queue, lambda: queue.is_idle)
    documents.append(document(2))
    run_until(queue, lambda: queue.is_idle)
    assert seen == [1, 2]
    assert queue.stop()


def test_starting_twice_is_refused():
    with a_queue([]) as queue, pytest.raises(Refused, match="runs already"):
        queue.start()


def test_an_error_of_on_start_is_raised_and_nothing_begins():
    def refuse():
        raise RuntimeError("no database")

    seen = []
    queue = a_queue([document()], seen.append, on_start=refuse)
    with pytest.raises(RuntimeError, match="no database"):
        queue.start()
    assert not queue.is_running
    assert seen == []


def test_hooks_that_fail_do_not_end_the_queue(caplog):
    errors = []

    def fail(*_offered):
        raise RuntimeError("hook")

    queue = a_queue([document(1)], on_idle=fail, on_stop=fail, on_error=lambda error: errors.append(str(error)))
    run_until(queue, lambda: errors)
    assert errors == ["hook", "hook"]
    failing = a_queue([document(2)], fail, on_error=fail, backoff=backoff("1h"))
    run_until(failing, lambda: failing.is_idle)
    assert "on_error of the queue memory failed" in caplog.text


def test_async_with():
    async def main():
        async with a_queue([document()], lambda one: seen.append(one["_id"])) as queue:
            await asyncio.to_thread(wait_for, lambda: queue.is_idle)

    seen = []
    asyncio.run(main())
    assert seen == [1]


@pytest.mark.parametrize("odd", [object(), {1: {2}}, b"\xff", float("nan"), StopIteration(), Ellipsis])
def test_what_a_handler_returns_does_not_matter(odd):
    documents = [document()]
    queue = a_queue(documents, lambda _one: odd)
    run_until(queue, lambda: queue.is_idle)
    assert documents[0]["sleepUntil"] is None


def test_a_plain_handler_that_returns_a_coroutine_is_awaited():
    async def later(one):
        seen.append(one["_id"])

    seen = []
    queue = a_queue([document()], partial(lambda how, one: how(one), later))
    run_until(queue, lambda: queue.is_idle)
    assert seen == [1]


def test_a_long_handler_keeps_its_lock():
    source = MemorySource([document()])
    begun, renewed = threading.Event(), threading.Event()
    seen = []

    def work(one):
        seen.append(one["lockedUntil"])
        begun.set()
        wait_for(lambda: source.documents[0]["lockedUntil"] > seen[0] + timedelta(seconds=1))
        renewed.set()

    queue = a_queue([], work, source=source, lock_for="1s")
    run_until(queue, renewed.is_set)
    assert len(seen) == 1
    assert source.documents[0]["sleepUntil"] is None


def test_a_late_finisher_changes_nothing_and_is_told():
    heard = []

    def work(_document):
        source.documents[0].update(lockedBy="another", sleepUntil=ago(0))

    source = MemorySource([document()])
    queue = a_queue([], work, source=source)
    queue.on("document.locked_out", heard.append)
    run_until(queue, lambda: heard)
    assert source.documents[0]["lockedBy"] == "another"
    assert source.documents[0]["sleepUntil"] is not None
    assert heard[0].data["document_id"] == 1


def test_what_the_owner_changes_while_it_runs_stays():
    def work(one):
        source.documents[one["_id"]].update(changes[one["_id"]])

    later = ago(-3600)
    changes = [{"sleepUntil": later}, {"interval": "0 0 1 1 *"}, {"sleepUntil": None}]
    source = MemorySource([document(number, interval="@hourly") for number in range(3)])
    queue = a_queue([], work, source=source)
    run_until(queue, lambda: queue.is_idle)
    first, second, third = source.documents
    assert first["sleepUntil"] == later
    assert (second["sleepUntil"].month, second["sleepUntil"].day) == (1, 1)
    assert third["sleepUntil"] is None
    assert not any("lockedBy" in one for one in source.documents)


def test_a_document_that_vanishes_while_it_runs_is_no_error():
    errors, heard = [], []
    source = MemorySource([document()])
    queue = a_queue([], lambda _one: source.documents.clear(), source=source, on_error=errors.append)
    queue.on("document.locked_out", heard.append)
    run_until(queue, lambda: heard)
    assert errors == []


def test_an_outage_is_told_once_and_the_queue_goes_on():
    errors = []
    source = Flaky([document()])
    source.fails = ("lock_next",)
    queue = a_queue([], source=source, on_error=errors.append)
    with queue:
        wait_for(lambda: source.calls >= 3)
        source.fails = ()
        wait_for(lambda: queue.is_idle)
    assert [type(error) for error in errors] == [StoreUnavailable]
    assert source.documents[0]["sleepUntil"] is None


def test_an_end_that_could_not_be_written_is_written_later():
    source = Flaky([document()])
    runs, errors = [], []
    source.fails = ("update",)
    queue = a_queue([], runs.append, source=source, on_error=errors.append)
    with queue:
        wait_for(lambda: errors)
        source.fails = ()
        wait_for(lambda: queue.is_idle)
    assert len(runs) == 1
    assert source.documents[0]["sleepUntil"] is None


def test_a_queue_whose_last_ends_cannot_be_written_still_stops(monkeypatch):
    monkeypatch.setattr("rota.documents.feeder.LAST_WRITES_FOR", 0.05)
    source = Flaky([document()])
    source.fails = ("update",)
    queue = a_queue([], source=source)
    queue.start()
    wait_for(lambda: queue.is_processing)
    assert queue.stop(timeout="30s")


def test_a_queue_that_is_stopped_during_an_outage_writes_its_ends_when_the_server_is_back():
    source = Flaky([document()])
    source.fails = ("update",)
    errors = []
    queue = a_queue([], source=source, on_error=errors.append)
    queue.start()
    wait_for(lambda: errors)
    assert not queue.stop(timeout=0.01)
    source.fails = ()
    assert queue.stop(timeout="60s")
    assert source.documents[0]["sleepUntil"] is None


def test_the_next_document_waits_for_the_next_delay():
    queue = a_queue([document(1), document(2, late=5)], next_delay="1h")
    feeder, _ = queue._make_services()
    queue._feeder = feeder
    try:
        feeder.turn()
        wait_for(lambda: feeder._ended)
        assert 3500 < feeder.turn() <= 3600
    finally:
        feeder.caller.stop()
    assert queue.source.documents[1]["sleepUntil"] is not None


def test_a_recurring_document_without_a_time_starts():
    source = MemorySource([{"_id": 1, "interval": "@yearly"}, {"_id": 2, "interval": "@yearly", "sleepUntil": None}])
    queue = a_queue([], source=source)
    run_until(queue, lambda: "sleepUntil" in source.documents[0])
    assert source.documents[0]["sleepUntil"].month == 1
    assert source.documents[1]["sleepUntil"] is None


def test_what_is_wrong_with_the_source_is_told_at_the_start(caplog):
    run_until(
        a_queue([{"_id": 1, "sleepUntil": "yesterday"}]), lambda: "'yesterday', which is not a time" in caplog.text
    )


def test_beside_an_app_its_observers_hear_of_documents():
    app, heard = App("memory://"), []
    app.on("document.done", heard.append)
    queue = a_queue([document()], app=app)
    run_until(queue, lambda: heard)
    assert heard[0].data["document_id"] == 1


def test_every_event_of_documents_is_emitted():
    heard = {}

    def work(one):
        if one["_id"] == "failed":
            raise RuntimeError("boom")
        if one["_id"] == "gone":
            source.documents[:] = [kept for kept in source.documents if kept["_id"] != "gone"]

    source = MemorySource(
        [document("done"), document("failed"), document("gone"), document("ended", repeatUntil=ago(1))]
    )
    queue = a_queue([], work, source=source, name="orders", backoff=backoff("1h"))
    queue.on("document.*", lambda event: heard.setdefault(event.name, event))
    run_until(queue, lambda: queue.is_idle)
    assert set(heard) == {name for name in NAMES if name.startswith("document.")}
    assert {event.data["queue"] for event in heard.values()} == {"orders"}
    assert heard["document.failed"].data["error"].startswith("RuntimeError: boom")
    assert heard["document.failed"].data["retry_at"] > heard["document.failed"].at


def test_documents_that_cannot_be_understood_reach_on_error():
    errors = []
    queue = a_queue([document(interval="sometimes")], on_error=errors.append)
    run_until(queue, lambda: errors)
    assert isinstance(errors[0], BadDocument)


def test_a_queue_that_is_overtaken_again_and_again_asks_less_often():
    """A transaction of the owner may hold a row for hours: others have locked what is due."""
    feeder, _ = a_queue([], source=Overtaken([]))._make_services()
    pauses = [feeder.turn() for _ in range(9)]
    assert pauses[:3] == [0.01, 0.02, 0.04]
    assert pauses[-1] == 0.64


class Overtaken(MemorySource):
    """A source whose due documents are always locked by others first."""

    def lock_next(self, *_):
        now = self.now()
        return Batch(now=now, documents=[], next_due=now)


def test_an_id_can_neither_begin_a_log_line_nor_steer_a_terminal(caplog):
    queue = a_queue([document("\x1b[31mred\nforged line")], lambda _: 1 / 0)
    run_until(queue, lambda: any("has failed" in one for one in caplog.messages))
    assert r"document \x1b[31mred\x0aforged line of memory has failed 1 time" in caplog.text
