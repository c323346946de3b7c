"""Adds jobs under their unique keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import accept, holds_key
from rota.store.contract import Added
from rota.store.memory.connection import Database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import NewJob


class Adder(Database):
    """Accepts jobs."""

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        with self._lock:
            self._check_open()
            at = self._at(now)
            added = [self._add(job, at) for job in jobs]
        self._notifier.notify("jobs")
        return added

    # The lock is held.

    def _add(self, new: NewJob, now: int) -> Added:
        if new.id in self._jobs:
            return Added(new.id, existed=True)
        taken = self._slots.get(new.slot or "") or self._key_holder(new.key, now)
        if taken:
            return Added(taken, existed=True)
        awaited = self._jobs.get(new.waits_for or "")
        must_wait = awaited is not None and awaited.is_live
        self._insert(accept(new, now, self._next_seq(), must_wait=must_wait))
        return Added(new.id)

    def _key_holder(self, key: str | None, now: int) -> str | None:
        """The job that has a key; a key that only held for a period is free once that is over."""
        job = self._jobs.get(self._keys.get(key or "", ""))
        if job is None:
            return None
        if holds_key(job.state, job.key_until, now):
            return job.id
        self._put(msgspec.structs.replace(job, key=None))
        return None
