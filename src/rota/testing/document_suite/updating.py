"""Tests what is written when a run has ended, and what must not be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rota.documents.contract import SideRecord, Update, Verdict
from rota.testing.document_suite.stage import BRIEF, wait_for

if TYPE_CHECKING:
    from rota.testing.document_suite.stage import CheckedSource


class TestUpdates:
    """A new time is written, and the lock is free."""

    def test_a_new_time_is_written(self, source: CheckedSource) -> None:
        source.due("a", payload=3)
        (reply,) = source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(3600))])
        assert reply.verdict is Verdict.APPLIED
        assert source.time_of("a") == source.at(3600)
        document = source.stage.read("a")
        assert document is not None
        assert document["payload"] == 3

    def test_a_document_that_is_done_has_null(self, source: CheckedSource) -> None:
        source.due("a")
        source.source.update([Update(locked=source.lock_one(), sleep_until=None)])
        assert source.time_of("a") is None
        assert source.lock() == []

    def test_no_lock_is_left(self, source: CheckedSource) -> None:
        source.due("a")
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(-1))])
        (again,) = source.lock()
        assert again.side.nominal == source.micros(-1)
        source.source.update([Update(locked=again, sleep_until=None)])
        document = source.stage.read("a")
        assert document == {"_id": "a", "kind": "wanted", "payload": 1}

    def test_a_batch_is_answered_in_order(self, source: CheckedSource) -> None:
        for number in range(5):
            source.due(number, ago=10 - number)
        locked = source.lock()
        source.stage.delete(2)
        replies = source.source.update([Update(locked=one, sleep_until=source.micros(60)) for one in locked])
        expected = [Verdict.APPLIED, Verdict.APPLIED, Verdict.LOST, Verdict.APPLIED, Verdict.APPLIED]
        assert [reply.verdict for reply in replies] == expected

    def test_an_empty_batch_is_nothing(self, source: CheckedSource) -> None:
        assert source.source.update([]) == []
        assert source.source.remove([]) == []
        assert source.source.renew([], 1) == []


class TestRemovals:
    """A document that is done and is to be removed."""

    def test_a_document_is_removed(self, source: CheckedSource) -> None:
        source.due("a")
        source.due("b", ago=1)
        (reply,) = source.source.remove([source.lock_one()])
        assert reply.verdict is Verdict.APPLIED
        assert source.stage.read("a") is None
        assert source.stage.read("b") is not None

    def test_a_document_that_its_owner_removed_is_lost(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one()
        source.stage.delete("a")
        assert source.source.update([Update(locked=locked, sleep_until=None)])[0].verdict is Verdict.LOST
        assert source.stage.read("a") is None


class TestFences:
    """A writer whose lock has expired changes nothing."""

    def test_a_late_update_changes_nothing(self, source: CheckedSource) -> None:
        source.due("a")
        late = source.lock_one(BRIEF)
        holder = source.lock_again()
        assert source.source.update([Update(locked=late, sleep_until=source.micros(99))])[0].verdict is Verdict.LOST
        reply = source.source.update([Update(locked=holder, sleep_until=source.micros(60))])[0]
        assert reply.verdict is Verdict.APPLIED
        assert source.time_of("a") == source.at(60)

    def test_a_late_removal_changes_nothing(self, source: CheckedSource) -> None:
        source.due("a")
        late = source.lock_one(BRIEF)
        source.lock_again()
        assert source.source.remove([late])[0].verdict is Verdict.LOST
        assert source.stage.read("a") is not None

    def test_a_late_writer_does_not_touch_what_the_next_one_wrote(self, source: CheckedSource) -> None:
        source.due("a")
        late = source.lock_one(BRIEF)
        source.source.update([Update(locked=source.lock_again(), sleep_until=source.micros(60))])
        assert source.source.update([Update(locked=late, sleep_until=None)])[0].verdict is Verdict.LOST
        assert source.time_of("a") == source.at(60)

    def test_an_expired_lock_that_nobody_took_still_counts(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one(BRIEF)
        wait_for(lambda: source.source.now() > locked.locked_until)
        assert source.source.update([Update(locked=locked, sleep_until=None)])[0].verdict is Verdict.APPLIED

    def test_the_same_update_twice_is_written_once(self, source: CheckedSource) -> None:
        source.due("a")
        update = Update(locked=source.lock_one(), sleep_until=source.micros(60))
        first, second = source.source.update([update]), source.source.update([update])
        assert (first[0].verdict, second[0].verdict) == (Verdict.APPLIED, Verdict.LOST)


class TestOwners:
    """What the owner changes while a document runs is not overwritten."""

    def test_a_new_time_of_the_owner_stays(self, source: CheckedSource) -> None:
        source.due("a", interval="@hourly")
        locked = source.lock_one()
        source.stage.change("a", sleepUntil=source.at(7200))
        reply = source.source.update([Update(locked=locked, sleep_until=source.micros(60))])[0]
        if source.has_lock:
            assert reply.verdict is Verdict.CHANGED
            assert reply.fresh is not None
            assert reply.fresh.terms.sleep_until == source.micros(7200)
            assert source.source.update([Update(locked=reply.fresh, keeps_schedule=True)])[0].verdict is Verdict.APPLIED
        else:
            assert reply.verdict is Verdict.LOST
        assert source.time_of("a") == source.at(7200)

    def test_a_time_for_another_run_at_once_is_kept(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one()
        source.stage.change("a", sleepUntil=source.at(-1))
        reply = source.source.update([Update(locked=locked, sleep_until=None)])[0]
        if reply.fresh is not None:
            source.source.update([Update(locked=reply.fresh, keeps_schedule=True)])
        assert source.lock_one().side.nominal == source.micros(-1)

    def test_a_new_interval_is_returned(self, source: CheckedSource) -> None:
        source.due("a", interval="@hourly")
        locked = source.lock_one()
        source.stage.change("a", interval="@daily")
        reply = source.source.update([Update(locked=locked, sleep_until=source.micros(60))])[0]
        assert reply.verdict is Verdict.CHANGED
        assert reply.fresh is not None
        assert reply.fresh.terms.interval == "@daily"
        assert reply.fresh.terms.sleep_until == locked.terms.sleep_until
        assert source.source.update([Update(locked=reply.fresh, sleep_until=source.micros(60))])[0].verdict is (
            Verdict.APPLIED
        )
        assert source.time_of("a") == source.at(60)

    def test_a_removal_that_the_owner_cancelled_is_returned(self, source: CheckedSource) -> None:
        source.due("a", autoRemove=True)
        locked = source.lock_one()
        source.stage.change("a", autoRemove=False)
        assert source.source.remove([locked])[0].verdict is Verdict.CHANGED
        assert source.stage.read("a") is not None

    def test_other_fields_may_change_at_any_time(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one()
        source.stage.change("a", payload=99)
        assert source.source.update([Update(locked=locked, sleep_until=None)])[0].verdict is Verdict.APPLIED
        document = source.stage.read("a")
        assert document is not None
        assert document["payload"] == 99

    def test_only_the_changed_one_of_a_batch_comes_back(self, source: CheckedSource) -> None:
        for number in range(3):
            source.due(number, ago=10 - number, interval="@hourly")
        locked = source.lock()
        source.stage.change(1, interval="@daily")
        replies = source.source.update([Update(locked=one, sleep_until=source.micros(60)) for one in locked])
        assert [reply.verdict for reply in replies] == [Verdict.APPLIED, Verdict.CHANGED, Verdict.APPLIED]


class TestSideRecords:
    """What Rota stores beside a document whose next time is a retry."""

    def test_a_put_off_document_keeps_its_nominal_time_and_its_error(self, source: CheckedSource) -> None:
        source.due("a", ago=50)
        side = SideRecord(nominal=source.micros(-50), failures=2, error="Boom: x\ny", failed_at=source.micros(-2))
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(-1), side=side)])
        locked = source.lock_one()
        assert locked.side == side
        assert locked.terms.sleep_until == source.micros(-1)

    def test_it_survives_the_death_of_the_next_holder(self, source: CheckedSource) -> None:
        source.due("a", ago=50)
        side = SideRecord(nominal=source.micros(-50), failures=1, error="Boom")
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(-1), side=side)])
        source.lock_one(BRIEF)
        assert source.lock_again().side == side

    def test_it_is_gone_after_a_run_that_went_well(self, source: CheckedSource) -> None:
        source.due("a", ago=50)
        side = SideRecord(nominal=source.micros(-50), failures=1, error="Boom")
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(-2), side=side)])
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(-1))])
        assert source.lock_one().side == SideRecord(nominal=source.micros(-1))

    def test_it_does_not_count_for_a_time_that_the_owner_wrote(self, source: CheckedSource) -> None:
        source.due("a", ago=50)
        side = SideRecord(nominal=source.micros(-50), failures=1, error="Boom")
        source.source.update([Update(locked=source.lock_one(), sleep_until=source.micros(600), side=side)])
        source.stage.change("a", sleepUntil=source.at(-3))
        assert source.lock_one().side == SideRecord(nominal=source.micros(-3))

    def test_each_document_has_its_own(self, source: CheckedSource) -> None:
        source.due(1, ago=50)
        source.due(2, ago=40)
        one, two = source.lock()
        boom = SideRecord(nominal=source.micros(-50), failures=1, error="Boom")
        bang = replace(boom, error="Bang", failures=4)
        source.source.update(
            [
                Update(locked=one, sleep_until=source.micros(-2), side=boom),
                Update(locked=two, sleep_until=source.micros(-1), side=bang),
            ]
        )
        assert [locked.side for locked in source.lock()] == [boom, bang]
