"""Tests a whole queue on the source: the behaviours that users rely on, on every server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from rota.documents import DocumentQueue
from rota.model.micros import micros_of
from rota.testing.document_suite.stage import wait_for

if TYPE_CHECKING:
    from rota.testing.document_suite.stage import CheckedSource


class TestRunning:
    """Documents are locked, run and written."""

    def test_one_time_deferred_recurring_and_self_removing_documents(self, source: CheckedSource) -> None:
        source.due("once", ago=60)
        source.due("hourly", ago=50, interval="@hourly")
        source.due("removed", ago=40, autoRemove=True)
        source.due("ended", ago=30, interval="@hourly", repeatUntil=source.at(-20))
        source.due("deferred", ago=-3600)
        seen: list[Any] = []
        with DocumentQueue(source.source, lambda document: seen.append(document["_id"])) as queue:
            wait_for(lambda: queue.is_idle)
        assert seen == ["once", "hourly", "removed"]
        assert source.time_of("once") is None
        after = source.time_of("hourly")
        assert after is not None
        assert (after.minute, after.second) == (0, 0)
        assert micros_of(after) > source.now
        assert source.stage.read("removed") is None
        assert source.time_of("ended") is None
        assert source.time_of("deferred") == source.at(3600)

    def test_an_error_frees_the_document_after_a_back_off(self, source: CheckedSource) -> None:
        source.due("a")
        source.due("b", ago=1)
        seen: list[Any] = []
        errors: list[BaseException] = []

        def work(document: dict[str, Any]) -> None:
            seen.append(document["_id"])
            if document["_id"] == "a" and seen.count("a") < 2:
                raise RuntimeError("no paper")

        with DocumentQueue(source.source, work, on_error=errors.append) as queue:
            wait_for(lambda: seen.count("a") == 2 and not queue.is_processing)
        assert seen == ["a", "b", "a"]
        assert [str(error) for error in errors] == ["no paper"]
        assert source.time_of("a") is None

    def test_an_interval_that_cannot_be_read_is_an_error_on_that_document(self, source: CheckedSource) -> None:
        source.due("bad", interval="every now and then")
        source.due("good", ago=1)
        seen: list[Any] = []
        with DocumentQueue(source.source, lambda document: seen.append(document["_id"])) as queue:
            wait_for(lambda: queue.is_idle)
            facts = {one.id: one for one in source.source.browse(10)}
        assert seen == ["good"]
        assert facts["bad"].state == "retrying"
        assert "every now and then" in facts["bad"].error

    @pytest.mark.parametrize("interval", [0, False, 90])
    def test_an_interval_that_is_no_text_is_an_error_and_no_silent_end(
        self, source: CheckedSource, interval: object
    ) -> None:
        if not source.stage.takes_any_value:
            pytest.skip("the column takes texts alone")
        source.due("bad", interval=interval)
        with DocumentQueue(source.source, lambda _document: None) as queue:
            wait_for(lambda: queue.is_idle)
            (facts,) = source.source.browse(10)
        assert facts.state == "retrying"
        assert "interval" in facts.error

    def test_documents_run_at_once_up_to_the_concurrency(self, source: CheckedSource) -> None:
        for number in range(6):
            source.due(number, ago=20 - number)
        meeting = threading.Barrier(3)
        with DocumentQueue(source.source, lambda _document: meeting.wait(60), concurrency=3) as queue:
            wait_for(lambda: queue.is_idle)
        assert [source.time_of(number) for number in range(6)] == [None] * 6


class TestBadInput:
    """What owners and handlers do wrong affects one document at most, and an owner's change is kept."""

    def test_a_document_that_vanishes_while_it_runs_is_not_written_again(self, source: CheckedSource) -> None:
        source.due("gone", interval="@hourly")
        source.due("next", ago=1)
        lost: list[Any] = []

        def work(document: dict[str, Any]) -> None:
            if document["_id"] == "gone":
                source.stage.delete("gone")

        queue = DocumentQueue(source.source, work)
        queue.on("document.locked_out", lambda event: lost.append(event.data["document_id"]))
        with queue:
            wait_for(lambda: queue.is_idle)
        assert lost == ["gone"]
        assert source.stage.read("gone") is None
        assert source.time_of("next") is None

    def test_what_its_owner_writes_while_it_runs_is_kept(self, source: CheckedSource) -> None:
        source.due("moved", interval="@hourly")
        source.due("stopped", ago=9, interval="@hourly")
        source.due("kept", ago=8, autoRemove=True)
        source.due("other", ago=7)
        changes: dict[str, dict[str, Any]] = {
            "moved": {"sleepUntil": source.at(7200)},
            "stopped": {"sleepUntil": None},
            "kept": {"autoRemove": False},
            "other": {"payload": 99},
        }

        def work(document: dict[str, Any]) -> None:
            source.stage.change(document["_id"], **changes[document["_id"]])

        with DocumentQueue(source.source, work) as queue:
            wait_for(lambda: queue.is_idle)
        assert source.time_of("moved") == source.at(7200)
        assert source.time_of("stopped") is None
        assert source.time_of("kept") is None  # done, and still there
        other = source.stage.read("other")
        assert other is not None
        assert other["payload"] == 99
        assert source.lock() == []

    def test_what_a_handler_returns_does_not_matter(self, source: CheckedSource) -> None:
        results: dict[int, Any] = dict(enumerate([object(), False, StopIteration, [1, {2}], Exception("no")]))
        for number in results:
            source.due(number, ago=20 - number)
        with DocumentQueue(source.source, lambda document: results[document["_id"]]) as queue:
            wait_for(lambda: queue.is_idle)
        assert [source.time_of(number) for number in results] == [None] * len(results)
        assert source.source.browse(10, "retrying") == []

    def test_a_field_that_holds_no_time_does_not_keep_the_others_from_running(self, source: CheckedSource) -> None:
        if not source.stage.takes_any_value:
            pytest.skip("the column takes times only")
        for number, odd in enumerate(["soon", 17, "", True]):
            source.stage.insert({"_id": f"odd-{number}", "sleepUntil": odd, "kind": "wanted", "payload": 1})
        source.due("good")
        seen: list[Any] = []
        with DocumentQueue(source.source, lambda document: seen.append(document["_id"])) as queue:
            wait_for(lambda: queue.is_idle)
        assert seen == ["good"]
        assert [one.kind for one in source.source.check()] == ["not-a-time"] * len(source.source.check())
        assert source.source.check()
