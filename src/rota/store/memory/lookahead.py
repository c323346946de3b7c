"""Decides on due jobs that their schedules created in advance, in the step of the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.model.jobs.job import State, accept
from rota.model.schedules.occurrence import of_skip
from rota.store.memory.adding import Adder
from rota.store.memory.changing import Changer
from rota.store.shared.placing import place_due
from rota.store.shared.stepwise import delete_unstarted, stop_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.slots import Skip


class PlacingSteps(NamedTuple):
    """What placing occurrences reads and writes."""

    live_job: Callable[[str], str | None]
    last_held: Callable[[str], str | None]
    key_holder: Callable[[str], str | None]
    was_made: Callable[[str, int], bool]
    make: Callable[[NewJob], None]
    put: Callable[[Job, Job], None]
    delete_unstarted: Callable[[Job], None]
    record_skip: Callable[[str, Skip], None]
    stop: Callable[[str, str], None]


class LookaheadDecider(Adder, Changer):
    """Decides on jobs that were created in advance. The caller holds the lock."""

    def _decide_due(self, job: Job, now: int) -> None:
        """Decide on a due job that was created in advance: it becomes ready, is held behind the run before it, or is
        deleted."""
        place_due(job, self._schedules.get(job.schedule_id or ""), self._steps(now), now)

    def _steps(self, now: int) -> PlacingSteps:
        changes = self._changes(now)
        return PlacingSteps(
            live_job=self._slots.get,
            last_held=self._last_held,
            key_holder=lambda key: self._key_holder(key, now),
            was_made=lambda name, fire_at: (name, fire_at) in self._made,
            make=lambda new: self._insert(accept(new, now, self._next_seq())),
            put=changes.put,
            delete_unstarted=lambda job: delete_unstarted([job], changes),
            record_skip=lambda name, skip: self._ledger.record(of_skip(name, skip)),
            stop=lambda job_id, reason: stop_job(job_id, reason, changes),
        )

    def _last_held(self, schedule_id: str) -> str | None:
        held = [job for job in self._jobs.values() if job.schedule_id == schedule_id and job.state is State.HELD]
        return max(held, key=lambda job: job.seq).id if held else None
