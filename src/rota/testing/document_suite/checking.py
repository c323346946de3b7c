"""Tests what a source reports about its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.documents.contract import STATES, SideRecord, Update

if TYPE_CHECKING:
    from rota.testing.document_suite.stage import CheckedSource


class TestChecking:
    """A source reports what keeps documents from running, and the command that mends it."""

    def test_a_prepared_source_has_nothing_to_tell(self, source: CheckedSource) -> None:
        source.due("a")
        assert source.source.check() == []

    def test_preparing_twice_makes_nothing_new(self, source: CheckedSource) -> None:
        assert source.source.prepare() == []

    def test_a_field_that_holds_no_time_is_reported(self, source: CheckedSource) -> None:
        if not source.stage.takes_any_value:
            pytest.skip("the column takes times only")
        source.stage.insert({"_id": "a", "sleepUntil": "yesterday", "kind": "wanted", "payload": 1})
        (finding,) = source.source.check()
        assert finding.kind == "not-a-time"
        assert finding.is_error
        assert "yesterday" in finding.message


class TestBrowsing:
    """Lists and counts of documents."""

    def test_the_states_of_documents(self, source: CheckedSource) -> None:
        source.due("running", ago=90)
        source.due("failed", ago=80)
        running, failed = source.lock(2)
        side = SideRecord(nominal=source.micros(-80), failures=3, error="Boom", failed_at=source.micros(-1))
        source.source.update([Update(locked=failed, sleep_until=source.micros(500), side=side)])
        source.due("due", ago=70)
        source.due("waiting", ago=-60)
        self._finish(source, "done", ago=100)
        found = {facts.id: facts for facts in source.source.browse(10)}
        assert {wanted: facts.state for wanted, facts in found.items()} == {
            "running": "running",
            "failed": "retrying",
            "due": "due",
            "waiting": "waiting",
            "done": "done",
        }
        for state in STATES:
            assert [facts.state for facts in source.source.browse(10, state)] == [state]
        assert set(source.source.counts(1).values()) == {(1, True)}
        assert found["running"].locked_until == running.locked_until
        assert found["running"].nominal == source.micros(-90)
        assert (found["failed"].failures, found["failed"].error) == (3, "Boom")
        assert (found["failed"].sleep_until, found["failed"].nominal) == (source.micros(500), source.micros(-80))

    def test_one_state_alone_can_be_asked_for(self, source: CheckedSource) -> None:
        source.due("due")
        source.due("waiting", ago=-60)
        assert [facts.id for facts in source.source.browse(10, "waiting")] == ["waiting"]
        assert [facts.id for facts in source.source.browse(10, "due")] == ["due"]
        assert source.source.browse(10, "running") == []

    def test_the_oldest_come_first_up_to_a_limit(self, source: CheckedSource) -> None:
        for number in range(4):
            source.due(number, ago=10 - number)
        assert [facts.id for facts in source.source.browse(2)] == [0, 1]

    def test_a_state_is_found_however_many_are_in_another(self, source: CheckedSource) -> None:
        source.stage.insert(
            *(
                {"_id": f"old-{number}", "sleepUntil": source.at(-100 - number), "kind": "wanted", "payload": 1}
                for number in range(45)
            )
        )
        source.due("waiting", ago=-60)
        self._finish(source, "done", ago=1_000)
        assert [facts.id for facts in source.source.browse(1, "waiting")] == ["waiting"]
        assert [facts.id for facts in source.source.browse(1, "done")] == ["done"]

    def test_a_count_is_exact_or_says_that_there_are_more(self, source: CheckedSource) -> None:
        for number in range(4):
            source.due(number)
        assert source.source.counts(4)["due"] == (4, True)
        assert source.source.counts(3)["due"] == (3, False)
        assert source.source.counts(3)["waiting"] == (0, True)

    def test_a_retry_whose_owner_wrote_another_time_is_due(self, source: CheckedSource) -> None:
        source.due("a", ago=80)
        side = SideRecord(nominal=source.micros(-80), failures=1, error="Boom")
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(500), side=side)])
        source.stage.change("a", sleepUntil=source.at(-5))
        assert [facts.id for facts in source.source.browse(10, "due")] == ["a"]
        assert source.source.browse(10, "retrying") == []

    def _finish(self, source: CheckedSource, wanted: str, ago: float) -> None:
        source.due(wanted, ago=ago)
        source.source.update([Update(locked=source.lock_one(), sleep_until=None)])


class TestFinding:
    """One document by its id."""

    def test_a_document_is_found_by_its_id(self, source: CheckedSource) -> None:
        source.due("a")
        source.due(17, ago=-60)
        found = source.source.find("a")
        assert found is not None
        assert (found.id, found.state) == ("a", "due")
        for wanted in (17, "17"):  # as Python and as a command line say it
            found = source.source.find(wanted)
            assert found is not None
            assert (found.id, found.state) == (17, "waiting")

    def test_a_document_that_is_done_runs_or_failed_is_found(self, source: CheckedSource) -> None:
        source.due("a", ago=90)
        locked = source.lock_one()
        running = source.source.find("a")
        assert running is not None
        assert (running.state, running.locked_until) == ("running", locked.locked_until)
        side = SideRecord(nominal=source.micros(-90), failures=2, error="Boom")
        source.source.update([Update(locked=locked, sleep_until=source.micros(-1), side=side)])
        failed = source.source.find("a")
        assert failed is not None
        assert (failed.state, failed.failures, failed.nominal) == ("retrying", 2, source.micros(-90))
        source.source.update([Update(locked=source.lock_one(), sleep_until=None)])
        done = source.source.find("a")
        assert done is not None
        assert (done.state, done.sleep_until) == ("done", None)

    def test_what_is_not_there_is_not_found(self, source: CheckedSource) -> None:
        source.due("a")
        for wanted in ("b", 5, "5", "", "a'b", "{", 2.5):
            assert source.source.find(wanted) is None

    def test_a_document_outside_the_condition_is_not_found(self, source: CheckedSource) -> None:
        source.due("a", kind="other")
        chosen = source.stage.make_source(has_lock=source.has_lock, only_kind="wanted")
        assert chosen.find("a") is None
        assert chosen.browse(10) == []
        chosen.close()
