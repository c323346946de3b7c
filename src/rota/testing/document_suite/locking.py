"""Tests which documents are locked, in which order, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rota.testing.document_suite.stage import BRIEF, LONG, MINUTE

if TYPE_CHECKING:
    from rota.testing.document_suite.stage import CheckedSource


class TestDueDocuments:
    """Due documents are locked, and no others."""

    def test_a_document_whose_time_has_come_is_locked(self, source: CheckedSource) -> None:
        source.due("a", ago=5)
        (locked,) = source.lock()
        assert locked.id == "a"
        assert locked.terms.sleep_until == source.micros(-5)
        assert locked.side.nominal == source.micros(-5)
        assert locked.side.failures == 0

    def test_the_handler_gets_the_whole_document(self, source: CheckedSource) -> None:
        source.due("a", payload=42)
        locked = source.lock_one()
        assert locked.document["payload"] == 42
        assert locked.document["kind"] == "wanted"

    def test_a_document_whose_time_is_to_come_waits(self, source: CheckedSource) -> None:
        source.due("a", ago=-3600)
        assert source.lock() == []

    def test_a_document_that_is_done_stays_done(self, source: CheckedSource) -> None:
        source.stage.insert({"_id": "a", "sleepUntil": None, "kind": "wanted", "payload": 1})
        assert source.lock() == []

    def test_a_document_without_the_field_is_ignored(self, source: CheckedSource) -> None:
        if not source.stage.can_omit_fields:
            pytest.skip("a column is always there")
        source.stage.insert({"_id": "a", "kind": "wanted", "payload": 1})
        assert source.lock() == []

    def test_a_field_that_holds_no_time_is_ignored(self, source: CheckedSource) -> None:
        if not source.stage.takes_any_value:
            pytest.skip("the column takes times only")
        for number, wrong in enumerate(["yesterday", 5, True, [source.at(-5)], {"at": source.at(-5)}, ""]):
            source.stage.insert({"_id": number, "sleepUntil": wrong, "kind": "wanted", "payload": 1})
        assert source.lock() == []

    def test_the_oldest_are_locked_first(self, source: CheckedSource) -> None:
        for wanted, ago in [("b", 20), ("a", 10), ("d", 40), ("c", 30)]:
            source.due(wanted, ago=ago)
        assert [locked.id for locked in source.lock(2)] == ["d", "c"]
        assert [locked.id for locked in source.lock(2)] == ["b", "a"]

    def test_no_more_than_the_limit_is_locked(self, source: CheckedSource) -> None:
        for number in range(7):
            source.due(number, ago=20 - number)
        assert [len(source.lock(3)) for _ in range(4)] == [3, 3, 1, 0]

    def test_a_condition_leaves_others_alone(self, source: CheckedSource) -> None:
        source.due("mine")
        source.due("other", kind="unwanted", ago=99)
        chosen = source.stage.make_source(has_lock=source.has_lock, only_kind="wanted")
        assert [locked.id for locked in chosen.lock_next(10, LONG, MINUTE).documents] == ["mine"]
        chosen.close()

    def test_ids_are_texts_or_numbers(self, source: CheckedSource) -> None:
        source.due("text", ago=20)
        source.due(7, ago=10)
        found = source.lock()
        assert [locked.id for locked in found] == ["text", 7]
        assert source.source.remove(found)[1].verdict.value == "applied"
        assert source.stage.read(7) is None

    def test_the_four_fields_are_read(self, source: CheckedSource) -> None:
        source.due("a", interval="0 9 * * *", repeatUntil=source.at(3600), autoRemove=True)
        terms = source.lock_one().terms
        assert terms.interval == "0 9 * * *"
        assert terms.repeat_until == source.at(3600)
        assert bool(terms.auto_remove) is True

    def test_the_servers_time_is_in_the_reply(self, source: CheckedSource) -> None:
        source.due("a")
        before = source.source.now()
        batch = source.source.lock_next(1, LONG, MINUTE)
        assert before - MINUTE < batch.now < before + MINUTE
        assert abs(batch.documents[0].locked_until - batch.now - LONG) < MINUTE


class TestLocks:
    """A locked document belongs to one caller."""

    def test_a_locked_document_is_not_locked_again(self, source: CheckedSource) -> None:
        source.due("a")
        source.lock_one()
        assert source.lock() == []

    def test_another_handle_does_not_get_it_either(self, source: CheckedSource) -> None:
        source.due("a")
        source.lock_one()
        other = source.stage.make_source(has_lock=source.has_lock)
        assert other.lock_next(10, LONG, MINUTE).documents == []
        other.close()

    def test_the_owner_sees_the_schedule_while_it_runs_if_the_lock_has_its_own_fields(
        self, source: CheckedSource
    ) -> None:
        source.due("a", ago=5)
        source.lock_one()
        assert (source.time_of("a") == source.at(-5)) is source.has_lock

    def test_a_lock_does_not_touch_other_fields(self, source: CheckedSource) -> None:
        source.due("a", payload=7, interval="@hourly")
        source.lock_one()
        document = source.stage.read("a")
        assert document is not None
        assert (document["payload"], document["interval"]) == (7, "@hourly")


class TestExpiredLocks:
    """A document whose holder died is locked by another."""

    def test_an_expired_lock_is_taken_over(self, source: CheckedSource) -> None:
        source.due("a")
        first = source.lock_one(BRIEF)
        second = source.lock_again()
        assert (second.id, first.id) == ("a", "a")

    def test_the_nominal_time_survives_the_death_of_a_holder(self, source: CheckedSource) -> None:
        source.due("a", ago=5, interval="@hourly")
        source.lock_one(BRIEF)
        source.lock_again(BRIEF)
        assert source.lock_again().side.nominal == source.micros(-5)


class TestTheNextTime:
    """An idle queue sleeps until the next document is due."""

    def test_the_next_time_within_the_horizon_is_returned(self, source: CheckedSource) -> None:
        source.due("later", ago=-40)
        source.due("sooner", ago=-30)
        batch = source.source.lock_next(10, LONG, 600 * 1_000_000)
        assert batch.next_due == source.micros(30)

    def test_a_time_beyond_the_horizon_is_not(self, source: CheckedSource) -> None:
        source.due("far", ago=-7200)
        assert source.source.lock_next(10, LONG, MINUTE).next_due is None

    def test_nothing_to_come_is_none(self, source: CheckedSource) -> None:
        assert source.source.lock_next(10, LONG, MINUTE).next_due is None
