"""Defines what a source of documents does. One source is one collection or table; every verb takes a batch.

The rules decide (`rules.py`), and a source records. These always hold:

- The server's clock decides what is due and when a lock ends. `now()` may estimate it from the last reply.
- `lock_next` takes the oldest due documents first. Two callers never hold the same document at one time.
- One document that the server refuses to lock does not keep the others from being locked.
- Every write is fenced: it happens only if the lock is still the one that `lock_next` or `renew` gave, and if the four
  fields are still what they were. A writer that comes too late changes nothing. What the owner changes stays.
- A document that Rota has put off (a retry), or has locked with a time in `sleepUntil` (`Fields.four()`), has a side
  record under (its id, that time). The side record holds the nominal time and the last error. It counts only while
  the document still shows that time, so an owner who writes another time starts afresh.
- With `Fields.four()`, the lock is an exact time in `sleepUntil`, and two locks of one document never show the same
  time. The side record is written before the lock, so that the nominal time is never lost. It also holds the lock's
  token: a holder whose renewal got no reply finds its lock again by it.
- Instants are microseconds since the epoch. A source whose server keeps milliseconds may cut what is finer.
- Calls come from two threads at least: one that locks and updates, and one that renews.
- Faults of the server are StoreUnavailable (worth another try) or StoreError, as in stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.errors import StoreError

Raw = TypeVar("Raw")  # a document as its driver gives it, such as a dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The four fields as they were read. Times are aware datetimes; a value that is none stays as it is.

    `sleep_until` is the time before the lock. None: the field is empty, and the document is done or not scheduled.
    """

    sleep_until: int | None
    interval: Any = None
    repeat_until: Any = None
    auto_remove: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRecord:
    """What Rota stores beside a document, while its `sleepUntil` shows a time that Rota wrote."""

    nominal: int  # the nominal time of the run
    failures: int = 0  # since the last run that succeeded
    error: str = ""
    failed_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedDocument(Generic[Raw]):
    """A document that this caller may run until `locked_until`, and the fence of all its writes."""

    id: Any  # of any type; it need not be hashable
    document: Raw
    terms: Terms
    side: SideRecord  # nominal = terms.sleep_until if there was no side record
    locked_until: int  # Fields.four(): exactly what sleepUntil shows, which is the fence
    token: str = ""  # unique to this lock: what `locked_by` holds; Fields.four(): what the lock's side record holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Generic[Raw]):
    """A fenced change of the schedule, which also frees the lock."""

    locked: LockedDocument[Raw]
    sleep_until: int | None = None  # None: null is written, and the document is done
    side: SideRecord | None = None  # kept under the new sleep_until; None: what was kept is deleted
    keeps_schedule: bool = False  # free the lock alone: the owner has written another sleepUntil


class Verdict(Enum):
    """What became of a fenced write."""

    APPLIED = "applied"
    CHANGED = "changed"  # the lock holds, and shows something else than was expected: decide again, on `fresh`
    LOST = "lost"  # the lock is gone, or the document; nothing was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Generic[Raw]):
    """The reply to one fenced write."""

    verdict: Verdict
    fresh: LockedDocument[Raw] | None = None  # if CHANGED: the same lock with the fields as they are now


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[Raw]):
    """The reply of `lock_next`."""

    now: int
    documents: list[LockedDocument[Raw]]
    next_due: int | None = None  # the next time within the horizon at which a document becomes due; if not later than
    # now, other callers took what this one tried, and more may be due
    refused: tuple[StoreError, ...] = ()  # of documents that the server does not let this caller lock; others were


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that keeps documents from running, or makes a source slow, and the command that mends it."""

    kind: str  # "no-collection", "no-index", "not-a-time", "path-through-list", "never-starts", …
    message: str
    command: str = ""  # to be run by the owner, in the tool of that server
    is_error: bool = False  # documents do not run because of it


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """One document, for lists and pages."""

    id: Any
    state: str  # waiting | due | running | retrying | done
    sleep_until: int | None
    nominal: int | None
    interval: Any = None
    locked_by: str = ""
    locked_until: int | None = None
    failures: int = 0
    error: str = ""
    failed_at: int | None = None


class Listed(NamedTuple):
    """Documents, and whether these are all."""

    documents: list[DocumentFacts]
    is_whole: bool


class Counted(NamedTuple):
    """A number of documents, and whether it is exact. If not, there are more."""

    number: int
    is_exact: bool


STATES = ("waiting", "due", "running", "retrying", "done")


def shown(value: object) -> str:
    """A value as text that can be encoded: bytes that are not UTF-8 are escaped."""
    return str(value).encode(errors="backslashreplace").decode()


def state_of(*, sleep_until: int | None, locked_until: int | None, failures: int, now: int) -> str:
    """A document's state in one word: one rule for every source.

    `locked_until` is None unless a lock is known; with four fields the lock's time is both.
    """
    if locked_until is not None and locked_until > now:
        return "running"
    if sleep_until is None:
        return "done"
    if failures:
        return "retrying"
    return "due" if sleep_until <= now else "waiting"


def document_facts(
    document_id: Any,
    at: int | None,
    side: SideRecord,
    *,
    interval: Any,
    locked_by: str,
    locked_until: int | None,
    now: int,
) -> DocumentFacts:
    """A document that shows this time, with its side record and its lock."""
    return DocumentFacts(
        id=document_id,
        state=state_of(sleep_until=at, locked_until=locked_until, failures=side.failures, now=now),
        sleep_until=at,
        nominal=None if at is None else side.nominal,
        interval=interval,
        locked_by=locked_by,
        locked_until=locked_until,
        failures=side.failures,
        error=side.error,
        failed_at=side.failed_at,
    )


MOST_READ = 20_000  # documents that one search reads


def listed(pages: Iterable[list[DocumentFacts] | None], limit: int, state: str | None) -> Listed:
    """The first documents of a state among pages of candidates. None for a page: there are more, which are not read."""
    found: list[DocumentFacts] = []
    read = 0
    for page in pages:
        if page is None:
            return Listed(found, is_whole=False)
        found += [one for one in page if state is None or one.state == state]
        read += len(page)
        if len(found) > limit:
            return Listed(found[:limit], is_whole=False)
        if read >= MOST_READ:
            return Listed(found, is_whole=False)
    return Listed(found, is_whole=True)


def texts_meant(wanted: Any) -> list[Any]:
    """The ids that a value may mean: itself, and the number that a text looks like."""
    if not isinstance(wanted, str):
        return [wanted]
    meant: list[Any] = [wanted]
    for kind in (int, float):
        try:
            number = kind(wanted)
        except ValueError:
            continue
        if str(number) == wanted:
            meant.append(number)
    return meant


class Source(ABC, Generic[Raw]):
    """A collection or table whose documents are jobs."""

    name: str  # for events, logs and errors: "shop.orders"

    @abstractmethod
    def now(self) -> int:
        """The server's clock."""

    @abstractmethod
    def lock_next(self, limit: int, lock_for: int, horizon: int) -> Batch[Raw]:
        """Lock up to `limit` documents that are due and not locked, oldest first.

        Also says when the next one becomes due, if that is within `horizon` microseconds. If nothing is due, this is
        one query, and its cost does not grow with the documents that are not due.
        """

    @abstractmethod
    def update(self, updates: Sequence[Update[Raw]]) -> list[Written[Raw]]:
        """Write new times and free the locks; one reply each, in order."""

    @abstractmethod
    def remove(self, locked: Sequence[LockedDocument[Raw]]) -> list[Written[Raw]]:
        """Delete documents that are done, under the same fence; one reply each, in order."""

    @abstractmethod
    def renew(self, locked: Sequence[LockedDocument[Raw]], lock_for: int) -> list[LockedDocument[Raw] | None]:
        """Extend locks to now + lock_for; None for each lock that is gone. What the owner changed does not matter."""

    def adopt(self, limit: int) -> list[LockedDocument[Raw]]:  # noqa: ARG002 - most tables cannot have any
        """Lock recurring documents that have an interval and no `sleepUntil` field at all, so that they can start.

        A source for which "no field" and "null" are the same has none: null means done. Their `terms.sleep_until` is
        None, and an update writes their first time.
        """
        return []

    @abstractmethod
    def check(self) -> list[Finding]:
        """What is wrong with the collection or table: each finding with the command that mends it."""

    @abstractmethod
    def prepare(self) -> list[str]:
        """Create what `check` says is missing of indexes and side tables; one sentence for each thing made."""

    @abstractmethod
    def search(self, limit: int, state: str | None = None) -> Listed:
        """The documents that carry a schedule, oldest time first, then those that are done; or those of one state.

        A state is found by a query of its own, so that a document is found however many are in other states.
        """

    @abstractmethod
    def find(self, wanted: Any) -> DocumentFacts | None:
        """The document with this id, of whatever type; None if there is none, or if it carries no schedule.

        A text also finds the id that is written so: "7" finds 7 if no document has the id "7".
        """

    def browse(self, limit: int, state: str | None = None) -> list[DocumentFacts]:
        """The documents that `search` lists."""
        return self.search(limit, state).documents

    def counts(self, most: int) -> dict[str, Counted]:
        """How many documents are in each state, counted up to `most`."""
        found = {state: self.search(most, state) for state in STATES}
        return {state: Counted(len(one.documents), one.is_whole) for state, one in found.items()}

    def close(self) -> None:
        """Release what the source opened itself."""
