"""Keeps the newest ended tasks of each collection, and deletes the others, whatever the retention is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.inspector.reading import newest_jobs, sync_schedules
from rota.model.jobs.job import FINAL
from rota.store.contract import LARGEST_BATCH, JobFilter

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

PAUSE = 30.0
MOST_AT_ONCE = 2_000  # ended tasks of one collection that are removed in one turn


class Trimmer(Service):
    """Trims the collections of which a task has ended since its last turn. Several may run at once."""

    name = "trimmer"

    def __init__(self, store: Store, events: Events, clock: StoreClock) -> None:
        super().__init__(events, clock)
        self._store = store
        self._seen: dict[str, int | None] = {}  # when a task of each had last ended, as of the last turn

    def turn(self) -> float:
        seen: dict[str, int | None] = {}
        for schedule in sync_schedules(self._store):
            ended_at = schedule.last.finished_at
            is_same = schedule.id in self._seen and self._seen[schedule.id] == ended_at
            if is_same or trim(self._store, schedule) < MOST_AT_ONCE:
                seen[schedule.id] = ended_at
        self._seen = seen  # set last: what failed, or was too much for one turn, is trimmed again
        return PAUSE


def trimmers(store: Store, events: Events, clock: StoreClock) -> list[Service]:
    """The trimmer of a node, if the store has any collection."""
    knows_any = next(sync_schedules(store), None) is not None
    return [Trimmer(store, events, clock)] if knows_any else []


def trim(store: Store, schedule: Schedule) -> int:
    """Delete the ended tasks of a collection beyond the newest that it keeps; return how many."""
    if schedule.spec.sync is None:
        return 0
    keep = schedule.spec.sync.keep
    ended = newest_jobs(store, schedule.id, JobFilter(states=tuple(FINAL)), None, keep + MOST_AT_ONCE)
    spare = [job.id for job in ended][keep:]
    batches = (spare[start : start + LARGEST_BATCH] for start in range(0, len(spare), LARGEST_BATCH))
    return sum(len(store.delete_jobs(batch)) for batch in batches)
