"""Starting a collection's task by hand: one step with its schedule, so that no tick and no other hand comes between."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.errors import ScheduleNotFound, VersionConflict
from rota.identity import whoami
from rota.model.edit import start_edit, with_note
from rota.model.job import accept
from rota.model.note import Author
from rota.store.contract import JobFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.contract import Store

TRIES = 50  # each of which somebody else has changed the schedule in between


class Started(NamedTuple):
    """The task that waits or runs now, and whether it did before."""

    job: Job
    existed: bool


def start_task(store: Store, schedule: Schedule, new_id: Callable[[], str], by: str) -> Started:
    """Start a task, unless the schedule's newest one is live: any newer than that would have changed its version."""
    for _ in range(TRIES):
        newest = store.list_jobs(JobFilter(schedule_id=schedule.id), limit=1).items
        if newest and newest[0].is_live:
            return Started(newest[0], existed=True)
        started = _try(store, schedule, new_id, by)
        if started is not None:
            return Started(started, existed=False)
        found = store.get_schedules([schedule.id])
        if not found:
            raise ScheduleNotFound(f"schedule '{schedule.id}' was removed meanwhile")
        schedule = found[0]
    raise VersionConflict(f"schedule '{schedule.id}' kept changing; try again")


def _try(store: Store, schedule: Schedule, new_id: Callable[[], str], by: str) -> Job | None:
    """The task, where the schedule still is what it was when it was read."""
    author = Author(note_id=new_id(), by=by or whoami(), verb="started")
    edit = with_note(start_edit(schedule, store.now(), new_id(), by), schedule, author)
    if store.edit_schedules([edit]):
        return None
    found = store.get_jobs([edit.jobs[0].id])
    return found[0] if found else accept(edit.jobs[0], store.now())  # ended already, and its task keeps nothing
