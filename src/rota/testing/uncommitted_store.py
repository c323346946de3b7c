"""Accepts jobs of a caller's transaction in memory at once, for tests: it cannot see whether that commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Exchange
from rota.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.jobs.settle import Change
    from rota.store.contract import Added


class UncommittedStore(MemoryStore):
    """The store of code under test that enqueues with `tx=`."""

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        del transaction
        return self.add_jobs(jobs)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        del transaction
        return not self.exchange(Exchange(holder=holder, settled=[change])).refused
