"""Reading: everything of one kind that a store holds, a page at a time; and what it has recorded of its clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.clock_record import KIND, NAME, ClockRecord, unpack_record
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.schedule import Schedule
    from rota.store.contract import ScheduleFilter, Store


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
