"""Reads everything of one kind from a store, a page at a time; and what the store recorded about its clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.clock.record import KIND, NAME, ClockRecord, unpack_record
from rota.model.collection import HEAD
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import JobFilter, ScheduleFilter, Store


def all_schedules(store: Store, where: ScheduleFilter | None = None) -> Iterator[Schedule]:
    """All schedules by id, or all that a filter shows."""
    cursor: str | None = None
    while True:
        page = store.list_schedules(where, cursor=cursor, limit=LARGEST_PAGE)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def clock_record(store: Store) -> ClockRecord:
    """When the store's clock was set, as far as nodes have seen it."""
    found = store.get_entries(KIND, [NAME])
    return unpack_record(found[0].data) if found else ClockRecord()


def sync_schedules(store: Store, head: str = HEAD) -> Iterator[Schedule]:
    """The schedules of all collections, or of one source's, by their ids alone."""
    cursor: str | None = head
    while cursor is not None:
        page = store.list_schedules(cursor=cursor, limit=LARGEST_PAGE)
        for schedule in page.items:
            if not schedule.id.startswith(head):
                return
            if schedule.spec.sync is not None:
                yield schedule
        cursor = page.cursor


def newest_jobs(store: Store, schedule_id: str, where: JobFilter, cursor: str | None, limit: int) -> Iterator[Job]:
    """Jobs of a schedule, newest first, so many at most."""
    mine = msgspec.structs.replace(where, schedule_id=schedule_id)
    while limit > 0:
        page = store.list_jobs(mine, cursor=cursor, limit=min(limit, LARGEST_PAGE))
        yield from page.items
        limit -= len(page.items)
        cursor = page.cursor
        if cursor is None:
            return
