"""Filters as people type them: 'state:failed task:mail.* queue:mail since:2h'."""

from __future__ import annotations

import difflib
import shlex
from typing import TYPE_CHECKING

from rota.cli.words import past_from
from rota.errors import BadOption
from rota.model.state import State
from rota.store.contract import LARGEST_PAGE, JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.model.job import Job
    from rota.store.contract import Store

FIELDS = ("state", "task", "queue", "schedule", "key", "since", "until")


def filter_from(text: str, now: int) -> JobFilter:
    """The filter that the text says; every term must hold, and `state:failed,cancelled` means either."""
    terms = dict(_terms(text))
    since, until = terms.get("since"), terms.get("until")
    return JobFilter(
        states=_states(terms.get("state", "")),
        task=_task(terms.get("task")),
        queue=terms.get("queue"),
        schedule_id=terms.get("schedule"),
        key=terms.get("key"),
        since=past_from("since", since, now) if since else None,
        until=past_from("until", until, now) if until else None,
    )


def matching_jobs(store: Store, where: JobFilter, *, most: int | None = None) -> Iterator[Job]:
    """The jobs that a filter lets through, newest first, read a page at a time."""
    cursor: str | None = None
    left = most
    while left is None or left > 0:
        limit = LARGEST_PAGE if left is None else min(LARGEST_PAGE, left)
        page = store.list_jobs(where, cursor=cursor, limit=limit)
        yield from page.items
        cursor = page.cursor
        left = None if left is None else left - len(page.items)
        if cursor is None:
            return


def _terms(text: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for term in _words(text):
        field, colon, value = term.partition(":")
        if not colon or not value:
            raise BadOption(f"{term!r} is no filter; write field:value, as in 'state:failed since:2h'")
        if field not in FIELDS:
            raise BadOption(f"{field!r} is no field of a filter; {_instead(field, FIELDS)}")
        if field in seen:
            raise BadOption(f"the filter says {field}: twice; every term must hold, so say it once")
        seen.add(field)
        yield field, value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as err:
        raise BadOption(f"the filter {text!r} has a quote without its partner") from err


def _states(text: str) -> tuple[State, ...]:
    names = [name for name in text.split(",") if name]
    known = [state.value for state in State]
    for name in names:
        if name not in known:
            raise BadOption(f"{name!r} is no state; {_instead(name, known)}")
    return tuple(State(name) for name in names)


def _task(text: str | None) -> str | None:
    if text is not None and "*" in text[:-1]:
        raise BadOption(f"task:{text}: a * stands at the end only, as in task:mail.*")
    return text


def _instead(word: str, known: tuple[str, ...] | list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}? There are {', '.join(known)}" if close else f"there are {', '.join(known)}"
