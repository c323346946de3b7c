"""Reading: everything of one kind that a store holds, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.schedule import Schedule
    from rota.store.contract import Store


def all_schedules(store: Store) -> Iterator[Schedule]:
    """All schedules by id."""
    cursor: str | None = None
    while True:
        page = store.list_schedules(cursor=cursor, limit=LARGEST_PAGE)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return
