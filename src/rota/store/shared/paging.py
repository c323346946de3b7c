"""Cuts a list into pages, and reads a list of any length a page at a time.

A store reads one item more than the limit: that one shows whether there is a next page.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ParamSpec

import msgspec

from rota.store.contract import Item, Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rota.model.schedules.occurrence import Occurrence

P = ParamSpec("P")


def walk(verb: Callable[P, Page[Item]], *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
    """Every item of a list, page by page: `for job in walk(app.jobs.list, state="failed"): ...`

    What is added or removed meanwhile may or may not be among them; everything else is, once.
    """
    page = verb(*args, **kwargs)
    yield from page.items
    while page.cursor is not None:
        page = verb(*args, **{**kwargs, "cursor": page.cursor})  # type: ignore[arg-type] # every list takes a cursor
        yield from page.items


def page_of(found: Sequence[Item], limit: int, cursor_of: Callable[[Item], str]) -> Page[Item]:
    """The first `limit` of what was found; a cursor only if more was found."""
    shown = list(found[:limit])
    return Page(shown, cursor_of(shown[-1]) if len(found) > limit else None)


def keyed_page(found: Iterable[tuple[object, Item]], limit: int) -> Page[Item]:
    """A page of items, each behind its key; the cursor is the key of the last, as JSON."""
    page = page_of(list(islice(found, limit + 1)), limit, lambda keyed: msgspec.json.encode(keyed[0]).decode())
    return Page([item for _, item in page.items], page.cursor)


def occurrence_page(entries: Iterable[Occurrence], limit: int) -> Page[Occurrence]:
    """A page of ranges and kept jobs together, oldest first."""
    return page_of(sorted(entries, key=lambda entry: entry.through_at), limit, lambda entry: str(entry.through_at))
