"""Summarizes all schedules, so that lists can sort, count and search by fields that the store has no index for.

A store lists schedules by id, by tenant and by origin. Health, state and task are found by one pass over all of them,
whose result is kept for a few seconds; the rows that a page shows are always read from the store.
"""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from rota.errors import BadOption, RotaError
from rota.inspector.coming import is_late, overdue_for
from rota.inspector.reading import all_schedules
from rota.inspector.schedule_state import schedule_state
from rota.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

log = logging.getLogger("rota.web")

KNOWN_FOR = 5.0  # seconds for which one pass over all schedules is used …
QUICK_FOR = 1.0  # … and one that is quick
QUICK = 0.02  # seconds that a request waits for a pass
LATER = 0.2  # seconds after which a thread begins one: until then it would slow down the present request

Health = Literal["broken", "failing", "late", "paused", "disabled", "retired", "finished", "well"]
HEALTHS: tuple[Health, ...] = get_args(Health)
TROUBLE: tuple[Health, ...] = ("broken", "failing", "late")  # the worst first
FIELDS = ("state", "task", "queue", "tenant", "tz")


class ScheduleBrief(Struct, frozen=True, kw_only=True):
    """The fields by which a schedule is sorted, counted and found."""

    id: str
    health: Health  # the worst that holds
    task: str
    queue: str
    tenant: str
    tz: str
    is_late: bool = False


class Terms(Struct, frozen=True, kw_only=True):
    """A search as it was typed: words of the id, and fields."""

    words: tuple[str, ...] = ()
    fields: dict[str, str] = {}

    def among(self, briefs: list[ScheduleBrief]) -> list[ScheduleBrief]:
        """Those that fit, in the same order."""
        return [brief for brief in briefs if self.fit(brief)] if self.words or self.fields else briefs

    def fit(self, brief: ScheduleBrief) -> bool:
        return all(word in brief.id.lower() for word in self.words) and all(
            _is_in(brief, wanted) if name == "state" else _fits(getattr(brief, name), wanted)
            for name, wanted in self.fields.items()
        )


def run_beside(read: Callable[..., None], *values: object) -> None:
    """Have a thread read something for later visitors, soon."""
    timer = threading.Timer(LATER, read, values)
    timer.name, timer.daemon = "rota-schedules", True
    timer.start()


class ScheduleIndex:
    """The briefs of one store's schedules, by id; read again when they are older than a few seconds.

    A quick reading is made within the request that needs it. Reading many thousand schedules takes a fraction of a
    second: then requests get the last reading, while a thread makes the next.
    """

    def __init__(self) -> None:
        self._briefs: list[ScheduleBrief] = []  # by id; replaced as a whole, never changed
        self._read_at: float | None = None
        self._took = 0.0
        self._reading = threading.Lock()

    def briefs(self, store: Store) -> list[ScheduleBrief]:
        """All briefs by id. One request reads; the others get the last reading."""
        if self._read_at is None:
            with self._reading:
                self._read_if_stale(store)
        elif self._is_stale and self._reading.acquire(blocking=False):
            if self._took > QUICK:
                run_beside(self._read_beside, store)
            else:
                self._read_and_release(store)
        return self._briefs

    @property
    def _is_stale(self) -> bool:
        known_for = KNOWN_FOR if self._took > QUICK else QUICK_FOR
        return self._read_at is None or time.monotonic() - self._read_at > known_for

    def _read_if_stale(self, store: Store) -> None:
        if not self._is_stale:
            return
        began = time.monotonic()
        self._briefs = _by_id(read_briefs(store))
        self._read_at = time.monotonic()
        self._took = self._read_at - began

    def _read_and_release(self, store: Store) -> None:
        try:
            self._read_if_stale(store)
        finally:
            self._reading.release()

    def _read_beside(self, store: Store) -> None:
        try:
            self._read_and_release(store)
        except RotaError as err:  # the page itself shows that the store is unavailable
            log.debug("the schedules could not be read: %s", err)

    def look_again(self, store: Store, schedule_id: str) -> None:
        """Read one schedule again, immediately after a change."""
        with self._reading:
            if self._read_at is None:
                return
            found = _briefs(store.get_schedules([schedule_id]), store.now())
            self._briefs = _by_id([*(brief for brief in self._briefs if brief.id != schedule_id), *found])


def _by_id(briefs: Iterable[ScheduleBrief]) -> list[ScheduleBrief]:
    return sorted(briefs, key=attrgetter("id"))


def read_briefs(store: Store) -> Iterator[ScheduleBrief]:
    return _briefs(all_schedules(store), store.now())


def _briefs(schedules: Iterator[Schedule] | list[Schedule], now: int) -> Iterator[ScheduleBrief]:
    for schedule in schedules:
        spec = schedule.spec
        yield ScheduleBrief(
            id=schedule.id,
            health=health_of(schedule, now),
            task=spec.task,
            queue=spec.queue,
            tenant=spec.tenant,
            tz=spec.tz,
            is_late=is_late(schedule, now),
        )


def health_of(schedule: Schedule, now: int) -> Health:
    """The worst health that holds for a schedule."""
    state = schedule_state(schedule, now)
    if state != "on":
        return "finished" if state == "finished" else state
    if schedule.last.is_failing:
        return "failing"
    return "late" if overdue_for(schedule, now) else "well"


def counted(briefs: Sequence[ScheduleBrief]) -> Counter[Health]:
    """How many are in each health. One that fails and is late counts as both, as the search finds it."""
    counts = Counter(map(attrgetter("health"), briefs))
    counts["late"] = sum(brief.is_late for brief in briefs)
    return counts


def in_trouble(briefs: Sequence[ScheduleBrief]) -> list[ScheduleBrief]:
    """The schedules that need attention, the worst first; they are few."""
    found = [brief for brief in briefs if brief.health in TROUBLE]
    return sorted(found, key=lambda brief: (TROUBLE.index(brief.health), brief.id))


def trouble_first(briefs: list[ScheduleBrief]) -> list[ScheduleBrief]:
    """Briefs by id, with those that need attention before all others."""
    trouble = in_trouble(briefs)
    return trouble + [brief for brief in briefs if brief.health not in TROUBLE] if trouble else briefs


def terms_from(text: str) -> Terms:
    """The terms of a search: `nightly tenant:acme state:paused task:mail.*`; every term must hold."""
    try:
        words = shlex.split(text)
    except ValueError as err:
        raise BadOption(
            sentence("search.schedule_quote", "the search {text!r} has a quote without its partner", text=text)
        ) from err
    fields: dict[str, str] = {}
    for word in words:
        name, colon, value = word.partition(":")
        if not colon:
            continue
        if name not in FIELDS or not value:
            raise BadOption(
                sentence(
                    "search.no_schedule_term",
                    "{word!r} is no filter; write a part of the id, or one of {known} as in state:paused",
                    word=word,
                    known=", ".join(FIELDS),
                )
            )
        if name == "state" and value not in HEALTHS:
            raise BadOption(
                sentence(
                    "search.no_health",
                    "{value!r} is no state of a schedule; write one of {known}",
                    value=value,
                    known=", ".join(HEALTHS),
                )
            )
        fields[name] = value
    return Terms(words=tuple(word.lower() for word in words if ":" not in word), fields=fields)


def _is_in(brief: ScheduleBrief, health: str) -> bool:
    return brief.is_late if health == "late" else brief.health == health


def _fits(value: str, wanted: str) -> bool:
    return value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted
