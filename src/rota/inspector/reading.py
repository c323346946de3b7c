"""Reads everything of one kind from a store, a page at a time, and the record of the store's clock."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING

import msgspec

from rota.model.clock.record import KIND, NAME, ClockRecord, unpack_record
from rota.model.collection import HEAD
from rota.store.contract import LARGEST_PAGE
from rota.store.shared.paging import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.entry import Entry
    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import JobFilter, ScheduleFilter, Store


def all_schedules(store: Store, where: ScheduleFilter | None = None) -> Iterator[Schedule]:
    """All schedules by id, or all that a filter shows."""
    return walk(store.list_schedules, where, limit=LARGEST_PAGE)


def all_entries(store: Store, kind: str) -> Iterator[Entry]:
    """All entries of a kind by name."""
    return walk(store.list_entries, kind, limit=LARGEST_PAGE)


def schedules_from(store: Store, prefix: str) -> Iterator[Schedule]:
    """The schedules whose ids begin with a prefix and are longer. No others are read: an id is a cursor."""
    found = walk(store.list_schedules, cursor=prefix or None, limit=LARGEST_PAGE)
    return takewhile(lambda schedule: schedule.id.startswith(prefix), found)


def clock_record(store: Store) -> ClockRecord:
    """When the store's clock was set, as far as nodes have seen it."""
    found = store.get_entries(KIND, [NAME])
    return unpack_record(found[0].data) if found else ClockRecord()


def sync_schedules(store: Store, head: str = HEAD) -> Iterator[Schedule]:
    """The schedules of all collections, or of one source's, by their ids alone."""
    return (schedule for schedule in schedules_from(store, head) if schedule.spec.sync is not None)


def newest_jobs(store: Store, schedule_id: str, where: JobFilter, cursor: str | None, limit: int) -> Iterator[Job]:
    """Jobs of a schedule, newest first, so many at most."""
    mine = msgspec.structs.replace(where, schedule_id=schedule_id)
    page = max(1, min(limit, LARGEST_PAGE))
    return islice(walk(store.list_jobs, mine, cursor=cursor, limit=page), max(0, limit))
