"""Counts the schedules that fail, are late or are broken, for all visitors of the first page: no index says which.

A reading that takes less than 20 ms is repeated when it is older than a second. A slower one is shown while a thread
makes the next, and for 50 times as long as it took, so that readings take at most 2 % of a core.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from rota.errors import RotaError
from rota.inspector.schedule_index import run_beside
from rota.inspector.standing import read_schedules

if TYPE_CHECKING:
    from rota.app import App
    from rota.inspector.standing import SchedulesFacts
    from rota.store.contract import Store

log = logging.getLogger("rota.web")

LEAST_AGE = 1.0  # seconds
SHARE = 50  # a reading is shown for so many times as long as it took
QUICK = 0.02  # seconds that a visitor waits for


class Summary:
    """The last reading of one app's schedules."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._facts: SchedulesFacts | None = None
        self._at = self._took = 0.0

    def get(self) -> SchedulesFacts:
        """The last reading; made now if there is none, or if it is quick and old."""
        facts, age = self._facts, time.monotonic() - self._at
        if facts is None or (age > LEAST_AGE and self._took < QUICK):
            with self._lock:
                if self._facts is not None and self._facts is not facts:  # another visitor has read meanwhile
                    return self._facts
                return self._read(self._app.open())
        if age > max(LEAST_AGE, SHARE * self._took):
            store = self._app.open()
            if self._lock.acquire(blocking=False):
                run_beside(self._read_beside, store)
        return facts

    def _read(self, store: Store) -> SchedulesFacts:
        began = time.monotonic()
        self._facts = read_schedules(store)
        self._at = time.monotonic()
        self._took = self._at - began
        return self._facts

    def _read_beside(self, store: Store) -> None:
        try:
            self._read(store)
        except RotaError as err:  # the page itself says that the store is away
            log.debug("the schedules could not be read for the first page: %s", err)
        finally:
            self._lock.release()
