"""Repairs what a clock that was ahead has left in the store: schedules, delays and leases.

Every write is guarded (by a schedule's version, by a job's state and lease), so any number of nodes may do it at once,
and doing it again changes nothing. It reads all schedules and all waiting jobs, a page at a time: only a step of the
clock is a reason for that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rota.errors import RotaError, StoreError
from rota.model.audit_record import Author
from rota.model.clock.repair import is_ahead_of_clock, is_lease_ahead, repair_job, repair_schedule, with_repair_audit
from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.store.contract import LARGEST_PAGE, JobFilter
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.model.jobs.job import Job
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

log = logging.getLogger("rota.clock")

MOST_ENTRIES = 5_000  # of one schedule's ledger that are read; older ones count as taken
LEASE_LEFT = 30 * SECOND  # what a lease that was given under the wrong clock, and whose holder is silent, still has


def repair_schedules(store: Store, new_id: Callable[[], str], by: str) -> int:
    """Move back the schedules that are ahead of the clock; return how many."""
    moved, cursor, is_last = 0, None, False
    while not is_last:
        page = store.list_schedules(cursor=cursor, limit=LARGEST_PAGE)
        now = store.now()
        ahead = [schedule for schedule in page.items if is_ahead_of_clock(schedule, now)]
        edits = [edit for schedule in ahead if (edit := _moved_back(store, schedule, now, new_id, by)) is not None]
        moved += len(edits) - (len(store.edit_schedules(edits)) if edits else 0)
        cursor, is_last = page.cursor, page.cursor is None
    return moved


def repair_jobs(store: Store) -> int:
    """Count the delays of jobs from now, if they were counted from a time that has not come; return how many."""
    moved = 0
    where = JobFilter(states=(State.SCHEDULED, State.HELD))
    for jobs in _pages(store, where):
        now = store.now()
        changes = [change for job in jobs if (change := repair_job(job, now)) is not None]
        moved += len(changes) - (len(store.change_jobs(changes)) if changes else 0)
    return moved


def repair_leases(store: Store, latest: int) -> int:
    """Shorten the leases that silent nodes got by a wrong clock; live nodes renew theirs. Return how many."""
    now = store.now()
    alive = {node.id for node in store.list_nodes() if is_alive(node, now)}
    shortened = 0
    for jobs in _pages(store, JobFilter(states=(State.RUNNING,))):
        for job in jobs:
            if is_lease_ahead(job, latest) and job.holder is not None and job.holder not in alive:
                lost = store.extend_leases(job.holder, [(job.id, job.lease_no)], LEASE_LEFT).lost
                shortened += not lost
    return shortened


def _moved_back(store: Store, schedule: Schedule, now: int, new_id: Callable[[], str], by: str) -> Edit | None:
    """The edit for one schedule; None for one that cannot be evaluated, which its scheduler stops."""
    entries, is_whole = _ledger_after(store, schedule, now)
    try:
        edit = repair_schedule(schedule, entries, now, is_whole=is_whole)
    except StoreError:
        raise
    except RotaError as err:
        log.warning("schedule %s is ahead of the store's clock and cannot be moved back: %s", schedule.id, err)
        return None
    author = Author(record_id=new_id(), by=by, verb="moved back")
    return None if edit is None else with_repair_audit(edit, schedule, author)


def _ledger_after(store: Store, schedule: Schedule, now: int) -> tuple[list[Occurrence], bool]:
    """A schedule's ledger after now, and whether that is all of it."""
    entries: list[Occurrence] = []
    cursor: str | None = None
    while len(entries) < MOST_ENTRIES:
        page = store.list_occurrences(
            schedule.id, now + 1, schedule.made_through + 1, cursor=cursor, limit=LARGEST_PAGE
        )
        entries += page.items
        cursor = page.cursor
        if cursor is None:
            return entries, True
    return entries, False


def _pages(store: Store, where: JobFilter) -> Iterator[list[Job]]:
    cursor, is_last = None, False
    while not is_last:
        page = store.list_jobs(where, cursor=cursor, limit=LARGEST_PAGE)
        yield page.items
        cursor, is_last = page.cursor, page.cursor is None
