"""Holds what all visitors of one dashboard share: readings of all schedules, which no index of a store answers.

Each costs up to a fraction of a second with many thousand schedules, so it is made once and shown for some seconds.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from rota.errors import RotaError
from rota.inspector.coming import overdue_schedules
from rota.inspector.facts.queue import jobs_by_state
from rota.inspector.schedule_index import QUICK, ScheduleIndex, run_beside
from rota.inspector.standing import MOST_LATE
from rota.web.pages.preparing import Visitors, prepare_first, prepare_rest
from rota.web.pages.schedule_summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App
    from rota.inspector.lanes import Load
    from rota.store.contract import Store

log = logging.getLogger("rota.web")

LOAD_FOR = 30.0  # seconds for which the load of one window is shown
OLDEST_LOAD = 300.0  # seconds: an older one is not shown while the next is read
TROUBLE_FOR = 5.0  # seconds for which the numbers of the navigation are shown
MOST_LOADS = 20  # windows whose load is held


class Readings:
    """One dashboard's readings."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.summary = Summary(app)
        self.index = ScheduleIndex()
        self.loads = Loads()
        self.trouble = TroubleCounts(app, self.summary)
        self.visitors = Visitors()

    def read_first(self) -> None:
        """Compile the templates, read the texts and all schedules when a server starts, so that its first visitor does
        not wait for that: what the first page needs comes first, and who is here goes before all of it."""
        prepare_first(self.visitors.wait)
        self._read_schedules()
        prepare_rest(self.visitors.wait)

    def _read_schedules(self) -> None:
        try:
            self.summary.get()
            self.visitors.wait()
            self.index.briefs(self._app.open())
        except RotaError as err:  # the page itself says that the store is away
            log.debug("the schedules could not be read before the first visit: %s", err)


class Trouble(NamedTuple):
    """What needs a person: failed jobs that are kept, and schedules that fail, are broken or are late."""

    failed_jobs: int = 0
    schedules: int = 0


class TroubleCounts:
    """Counts what needs a person, at most once in five seconds for all visitors."""

    def __init__(self, app: App, summary: Summary) -> None:
        self._app = app
        self._summary = summary
        self._last, self._at = Trouble(), float("-inf")

    def get(self) -> Trouble:
        """The last count; one that is older is made again. A store that is away leaves the last one."""
        if time.monotonic() - self._at < TROUBLE_FOR:
            return self._last
        self._at = time.monotonic()  # other visitors need not count, too
        try:
            self._last = self._read(self._app.open())
        except RotaError as err:  # the page itself says that the store is away
            log.debug("what needs a person could not be counted: %s", err)
        return self._last

    def _read(self, store: Store) -> Trouble:
        facts = self._summary.get()
        late = {schedule.id for schedule in overdue_schedules(store, MOST_LATE)}
        schedules = late | {*facts.broken} | {one.schedule_id for one in facts.failing}
        return Trouble(jobs_by_state(store.list_queues())["failed"], len(schedules))


class Loads:
    """The loads of the windows that visitors of the agenda looked at last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loads: dict[tuple[object, ...], _Reading] = {}

    def get(self, window: tuple[object, ...], read: Callable[[], Load]) -> Load:
        """The load of a window. One that is older than 30 s is read again: in a thread if that is slow."""
        with self._lock:
            last, now = self._loads.get(window), time.monotonic()
            if last is not None and now - last.at < LOAD_FOR:
                return last.load
            is_shown = last is not None and last.took >= QUICK and now - last.at <= OLDEST_LOAD
            if last is not None and is_shown:
                self._loads[window] = last._replace(at=now)  # other visitors need not start another thread
        if last is None or not is_shown:
            return self._read(window, read)
        run_beside(self._read_beside, window, read)
        return last.load

    def _read(self, window: tuple[object, ...], read: Callable[[], Load]) -> Load:
        began = time.monotonic()
        load = read()
        with self._lock:
            if len(self._loads) >= MOST_LOADS:
                self._loads.clear()
            self._loads[window] = _Reading(load, time.monotonic(), time.monotonic() - began)
        return load

    def _read_beside(self, window: tuple[object, ...], read: Callable[[], Load]) -> None:
        try:
            self._read(window, read)
        except RotaError as err:  # the page itself says that the store is away
            log.debug("the load of the agenda could not be read: %s", err)


class _Reading(NamedTuple):
    """The load of a window, when it was read and how long that took."""

    load: Load
    at: float
    took: float
