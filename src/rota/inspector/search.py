"""Reads and runs searches in the form that people type: 'state:failed task:mail.* args.user_id:42 since:2h'.

State, task, queue, schedule, key, time and two or more attempts are found by the stores' indexes. Arguments are not,
nor are 0 or 1 attempts, which most jobs have: such a search reads the newest jobs that the rest of it finds. A page
reads 1,500 jobs, says so, and its cursor continues; a list of the command line reads
10,000, or all if that is asked for.
"""

from __future__ import annotations

import difflib
import re
import shlex
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadOption
from rota.inspector.typed_times import past_from
from rota.model.jobs.job import Job, State
from rota.model.jobs.payload import REDACTED
from rota.sentences import Sentence, sentence
from rota.store.contract import FEWEST_REPEATED, LARGEST_PAGE, JobFilter
from rota.store.shared.paging import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rota.model.secrets.redaction import Redaction
    from rota.store.contract import Store

    Parameters = Callable[[str], Sequence[str]]  # the names of a task's parameters, as far as they are known

FIELDS = ("state", "task", "queue", "schedule", "key", "since", "until", "attempts")
LOOKED_THROUGH = 10_000  # jobs that are read for terms without an index
LOOKED_PER_PAGE = 1_500  # jobs that a page reads, so that it takes less than 50 ms
_ARGUMENT = "args."
_ESCAPE = b"\\"  # a payload that has one may hold a text in another form
_LITERAL = re.compile(r"-?[0-9]+|[A-Za-z_-][A-Za-z0-9_ :@-]*", re.ASCII)  # JSON has one form of it
_WORDS = ("true", "false", "null")
_ATTEMPTS = re.compile(r"(>?)([0-9]{1,6})", re.ASCII)


class Search(Struct, frozen=True, kw_only=True):
    """The terms of a search: those of the indexes, and those that each job must be read for."""

    where: JobFilter
    arguments: tuple[tuple[str, str], ...] = ()  # a path such as user.id, and the value as text
    attempts: tuple[str, int] | None = None  # if no index has them; ">", 0: more than none

    @property
    def is_by_index(self) -> bool:
        return not self.arguments and self.attempts is None

    def fits(self, job: Job, redaction: Redaction, parameters: Parameters) -> bool:
        """Whether a job that the indexes found is one of them. A hidden value never fits."""
        if self.attempts is not None:
            sign, number = self.attempts
            if not (job.attempts > number if sign else job.attempts == number):
                return False
        if not self.arguments:
            return True
        if _ESCAPE not in job.payload and any(_written(text) not in job.payload for _, text in self.arguments):
            return False
        call = redaction.call(job.payload)
        names = {str(number): value for number, value in enumerate(call.args)}
        named = {**names, **dict(zip(parameters(job.task), call.args, strict=False)), **call.kwargs}
        return all(_has(named, path, text) for path, text in self.arguments)


class Found(Struct, frozen=True, kw_only=True):
    """A page of what a search found, newest first."""

    items: list[Job]
    cursor: str | None = None
    looked: int = 0  # jobs that were read, if that was needed
    is_cut: bool = False  # there are older ones, which were not read


def search_from(text: str, now: int) -> Search:
    """The search of a text. Every term must hold, and `state:failed,cancelled` means either."""
    terms = list(_terms(text))
    rest = " ".join(shlex.quote(f"{field}:{value}") for field, value in terms if _is_indexed(field))
    said = next((_attempts(value) for field, value in terms if field == "attempts"), None)
    where = filter_from(rest, now)
    least, most = (None, None) if said is None else _bounds(*said)
    is_indexed = least is not None and least >= FEWEST_REPEATED
    return Search(
        where=msgspec.structs.replace(where, least_attempts=least, most_attempts=most) if is_indexed else where,
        arguments=tuple(
            (field.removeprefix(_ARGUMENT), value) for field, value in terms if field.startswith(_ARGUMENT)
        ),
        attempts=None if is_indexed else said,
    )


def search_jobs(
    store: Store, search: Search, redaction: Redaction, parameters: Parameters, *, cursor: str | None, limit: int
) -> Found:
    """A page of jobs that a search finds. A search that reads each job may return a few more than the limit."""
    if search.is_by_index:
        page = store.list_jobs(search.where, cursor=cursor, limit=limit)
        return Found(items=page.items, cursor=page.cursor)
    items: list[Job] = []
    looked = 0
    while looked < LOOKED_PER_PAGE:
        page = store.list_jobs(search.where, cursor=cursor, limit=LARGEST_PAGE)
        looked, cursor = looked + len(page.items), page.cursor
        items += [job for job in page.items if search.fits(job, redaction, parameters)]
        if cursor is None or len(items) >= limit:
            return Found(items=items, cursor=cursor, looked=looked)
    return Found(items=items, cursor=cursor, looked=looked, is_cut=True)


def found_jobs(
    store: Store,
    search: Search,
    redaction: Redaction,
    parameters: Parameters,
    *,
    most: int | None = None,
    look: int | None = LOOKED_THROUGH,
) -> Iterator[Job]:
    """All jobs that a search finds, newest first; terms without an index are searched for in the newest `look` jobs."""
    if search.is_by_index:
        yield from matching_jobs(store, search.where, most=most)
        return
    number = 0
    for job in matching_jobs(store, search.where, most=look):
        if number == most:
            return
        if search.fits(job, redaction, parameters):
            number += 1
            yield job


def has_older(store: Store, search: Search) -> bool:
    """Whether there are jobs that a search by terms without an index leaves out, because it reads only the newest."""
    if search.is_by_index:
        return False
    return store.count_jobs(search.where, limit=LOOKED_THROUGH + 1) > LOOKED_THROUGH


def filter_from(text: str, now: int) -> JobFilter:
    """The filter of a text, for the terms that the indexes have."""
    terms = dict(_terms(text))
    for field in terms:
        if not _is_indexed(field):
            raise BadOption(f"{field}: is no field of this filter; `rota jobs list` and the dashboard search by it")
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


def without_state(text: str) -> str:
    """A search, of jobs or of schedules, without its state: a tab adds its own."""
    try:
        return shlex.join(term for term in shlex.split(text) if not term.startswith("state:"))
    except ValueError:
        return ""


def matching_jobs(store: Store, where: JobFilter, *, most: int | None = None) -> Iterator[Job]:
    """The jobs that fit a filter, newest first, read a page at a time."""
    limit = LARGEST_PAGE if most is None else max(1, min(most, LARGEST_PAGE))
    return islice(walk(store.list_jobs, where, limit=limit), most)


def _terms(text: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for term in _words(text):
        field, colon, value = term.partition(":")
        if not colon or not value:
            raise BadOption(
                sentence(
                    "search.no_term",
                    "{term!r} is no filter; write field:value, as in 'state:failed since:2h'",
                    term=term,
                )
            )
        if field not in FIELDS and not (field.startswith(_ARGUMENT) and len(field) > len(_ARGUMENT)):
            raise BadOption(
                sentence(
                    "search.no_field",
                    "{field!r} is no field of a filter; {instead}",
                    field=field,
                    instead=_instead(field, (*FIELDS, "args.NAME")),
                )
            )
        if field in seen:
            raise BadOption(
                sentence(
                    "search.twice", "the filter says {field}: twice; every term must hold, so say it once", field=field
                )
            )
        seen.add(field)
        yield field, value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as err:
        raise BadOption(
            sentence("search.quote", "the filter {text!r} has a quote without its partner", text=text)
        ) from err


def _is_indexed(field: str) -> bool:
    return field != "attempts" and not field.startswith(_ARGUMENT)


def _attempts(text: str) -> tuple[str, int]:
    found = _ATTEMPTS.fullmatch(text)
    if found is None:
        raise BadOption(
            sentence(
                "search.attempts",
                "attempts:{text}: write a number, as in attempts:3, or attempts:>1 for more than one",
                text=text,
            )
        )
    return found[1], int(found[2])


def _bounds(sign: str, number: int) -> tuple[int, int | None]:
    """The fewest and the most attempts of a term."""
    return (number + 1, None) if sign else (number, number)


def _has(value: Any, path: str, text: str) -> bool:
    """Whether a value has another at a path; names may hold dots themselves."""
    if not path:
        return _is(value, text)
    if isinstance(value, list):
        return any(_has(item, path, text) for item in value)
    if not isinstance(value, dict):
        return False
    heads = [name for name in value if path == name or path.startswith(f"{name}.")]
    return any(_has(value[name], path[len(name) + 1 :], text) for name in heads)


@lru_cache(maxsize=100)
def _written(text: str) -> bytes:
    """The bytes that a payload contains if one of its values fits a text: most payloads need not be decoded then."""
    whole = text.removesuffix("*")
    return whole.encode() if _LITERAL.fullmatch(whole) and whole.lower() not in _WORDS else b""


def _is(value: Any, text: str) -> bool:
    """Whether a value fits a text; a trailing * matches any ending."""
    if value == REDACTED:
        return False
    if isinstance(value, list):
        return any(_is(item, text) for item in value)
    if isinstance(value, str):
        return value.startswith(text[:-1]) if text.endswith("*") else value == text
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value] == text.lower()
    return str(value) == text


def _states(text: str) -> tuple[State, ...]:
    names = [name for name in text.split(",") if name]
    known = [state.value for state in State]
    for name in names:
        if name not in known:
            raise BadOption(
                sentence("search.no_state", "{name!r} is no state; {instead}", name=name, instead=_instead(name, known))
            )
    return tuple(State(name) for name in names)


def _task(text: str | None) -> str | None:
    if text is not None and "*" in text[:-1]:
        raise BadOption(
            sentence("search.star", "task:{text}: a * stands at the end only, as in task:mail.*", text=text)
        )
    return text


def _instead(word: str, known: tuple[str, ...] | list[str]) -> Sentence:
    close = difflib.get_close_matches(word, known, n=1)
    return (
        sentence("search.meant", "did you mean {word!r}? There are {known}", word=close[0], known=", ".join(known))
        if close
        else sentence("search.known", "there are {known}", known=", ".join(known))
    )
