"""Tests locks that are extended while a handler runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.documents.contract import Update, Verdict
from rota.testing.document_suite.stage import BRIEF, LONG

if TYPE_CHECKING:
    from rota.testing.document_suite.stage import CheckedSource


class TestRenewals:
    """A lock is renewed by its holder alone."""

    def test_a_renewed_lock_holds(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one()
        (renewed,) = source.source.renew([locked], 2 * LONG)
        assert renewed is not None
        assert renewed.locked_until > locked.locked_until
        assert source.lock() == []
        assert source.source.update([Update(locked=renewed, sleep_until=None)])[0].verdict is Verdict.APPLIED

    def test_it_can_be_renewed_again_and_again(self, source: CheckedSource) -> None:
        source.due("a", ago=5)
        locked = source.lock_one()
        for _ in range(3):
            (renewed,) = source.source.renew([locked], LONG)
            assert renewed is not None
            locked = renewed
        assert locked.side.nominal == source.micros(-5)
        assert source.source.update([Update(locked=locked, sleep_until=source.micros(60))])[0].verdict is (
            Verdict.APPLIED
        )
        assert source.time_of("a") == source.at(60)

    def test_the_nominal_time_survives_a_renewal_and_a_death(self, source: CheckedSource) -> None:
        source.due("a", ago=5)
        (renewed,) = source.source.renew([source.lock_one()], BRIEF)
        assert renewed is not None
        assert source.lock_again().side.nominal == source.micros(-5)

    def test_a_lost_lock_is_not_renewed(self, source: CheckedSource) -> None:
        source.due("a")
        late = source.lock_one(BRIEF)
        holder = source.lock_again()
        assert source.source.renew([late], LONG) == [None]
        assert source.source.update([Update(locked=holder, sleep_until=None)])[0].verdict is Verdict.APPLIED

    def test_a_document_that_is_gone_is_not_renewed(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one()
        source.stage.delete("a")
        assert source.source.renew([locked], LONG) == [None]

    def test_a_holder_that_got_no_reply_still_holds_its_lock(self, source: CheckedSource) -> None:
        source.due("a")
        locked = source.lock_one()
        source.source.renew([locked], LONG)  # the reply is lost
        assert source.source.renew([locked], LONG) != [None]
        reply = source.source.update([Update(locked=locked, sleep_until=None)])[0]
        if reply.fresh is not None:
            reply = source.source.update([Update(locked=reply.fresh, sleep_until=None)])[0]
        assert reply.verdict is Verdict.APPLIED

    def test_a_batch_is_answered_in_order(self, source: CheckedSource) -> None:
        for number in range(3):
            source.due(number, ago=10 - number)
        locked = source.lock()
        source.stage.delete(1)
        first, second, third = source.source.renew(locked, LONG)
        assert second is None
        assert first is not None
        assert third is not None
        assert (first.id, third.id) == (0, 2)
