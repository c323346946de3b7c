"""Tests that each document is locked by one of many callers at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rota.documents.contract import Update, Verdict
from rota.testing.document_suite.stage import LONG, MINUTE

if TYPE_CHECKING:
    from rota.testing.document_suite.stage import CheckedSource

RIVALS = 4
DOCUMENTS = 60


class TestRaces:
    """Each thread has a source of its own, as processes do."""

    def test_each_document_is_locked_once(self, source: CheckedSource) -> None:
        for number in range(DOCUMENTS):
            source.due(number, ago=100 - number)
        taken: list[Any] = []
        refused: list[Any] = []
        begin = threading.Barrier(RIVALS)

        def rival(limit: int) -> None:
            mine = source.stage.make_source(has_lock=source.has_lock)
            begin.wait()
            while locked := mine.lock_next(limit, LONG, MINUTE).documents:
                taken.extend(one.id for one in locked)
                replies = mine.update([Update(locked=one, sleep_until=None) for one in locked])
                refused.extend(reply for reply in replies if reply.verdict is not Verdict.APPLIED)
            mine.close()

        threads = [threading.Thread(target=rival, args=(limit,)) for limit in (1, 3, 7, 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        left = source.lock(DOCUMENTS)  # a thread may have found only documents that others locked first
        taken.extend(one.id for one in left)
        assert sorted(taken) == list(range(DOCUMENTS))
        assert refused == []
