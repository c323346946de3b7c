"""Walks through a list of any length: the pages behind the first are asked for when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.store.contract import Page

P = ParamSpec("P")
Item = TypeVar("Item")


def walk(verb: Callable[P, Page[Item]], *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
    """Every item of a list, page by page: `for job in walk(app.jobs.list, state="failed"): ...`

    What is added or removed meanwhile may or may not be among them; everything else is, once.
    """
    page = verb(*args, **kwargs)
    yield from page.items
    while page.cursor is not None:
        page = verb(*args, **{**kwargs, "cursor": page.cursor})  # type: ignore[arg-type] # every list takes a cursor
        yield from page.items
