"""Runs a loop with one duty in a thread of its own. The loop survives every fault of the store and emits an event."""

from __future__ import annotations

import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.errors import StoreError, StoreSealed, StoreUnavailable

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock

log = logging.getLogger("rota.engine")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
STUCK_AFTER = 10.0  # seconds a turn may take before the service counts as stuck


class Service(ABC):
    """Turns again and again until it is stopped. Tests call turn() themselves."""

    name = "service"

    def __init__(self, events: Events, clock: StoreClock) -> None:
        self.events = events
        self.clock = clock
        self.started = threading.Event()
        self.turns_by = time.monotonic() + STUCK_AFTER  # when the next turn has begun, unless the loop is stuck
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._faults = 0
        self._last_failure = ""  # the unexpected error of the last turn, if it had one
        self._is_away = False  # the store was unavailable at the last call
        self.is_sealed = False  # the store refuses new work while it is copied

    @abstractmethod
    def turn(self) -> float:
        """Do what is due now; return how many seconds may pass until the next turn."""

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name=f"rota-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the loop to end; join() waits for it."""
        self._stopping.set()
        self.wake()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the loop to end; False if it did not in time."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def wake(self) -> None:  # noqa: B027 - most services have nothing to wake
        """End a wait early, from any thread."""

    def wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def close(self) -> None:  # noqa: B027 - nor anything to release
        """Release what the loop held; called in its own thread."""

    @property
    def is_turning(self) -> bool:
        """Whether the loop has turned within the last 10 s, or sleeps as long as it asked for."""
        return time.monotonic() < self.turns_by

    @property
    def is_away(self) -> bool:
        """Whether the store was unavailable at the last call."""
        return self._is_away

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def note_sealed(self, err: StoreSealed) -> None:
        """Emit once that the store is sealed. The loop continues: a copy may be cancelled."""
        if not self.is_sealed:
            self.is_sealed = True
            self.events.emit("store.moved", 0, service=self.name, error=str(err))

    def note_unsealed(self) -> None:
        """Emit that the store accepts work again."""
        self.is_sealed = False
        self.events.emit("store.back", self.clock.now(), service=self.name)

    def _loop(self) -> None:
        self.started.set()
        while not self._stopping.is_set():
            pause = self._guarded_turn()
            self.turns_by = time.monotonic() + pause + STUCK_AFTER
            if pause > 0 and not self._stopping.is_set():
                self.wait(pause)
        self.close()

    def _guarded_turn(self) -> float:
        """A turn whose faults end in a jittered pause, never in a dead loop."""
        try:
            pause = self.turn()
        except StoreUnavailable as err:
            return self._fault("store.unavailable", err)
        except StoreSealed as err:
            self.note_sealed(err)
            return LONGEST_PAUSE
        except Exception as err:  # noqa: BLE001 - no error may end the loop
            self._log_failure(err)
            return self._fault("service.failed", err)
        self._faults, self._last_failure = 0, ""
        if self._is_away:
            self._is_away = False
            self.events.emit("store.back", self.clock.now(), service=self.name)
        return pause

    def _log_failure(self, err: Exception) -> None:
        """Log an error once, however often it comes again. One of the store says itself what to do."""
        failure = f"{type(err).__name__}: {err}"
        if failure == self._last_failure:
            return
        self._last_failure = failure
        has_sentence = isinstance(err, StoreError)
        reason = f": {err}" if has_sentence else ""
        log.error("%s failed; it goes on%s", self.name, reason, exc_info=None if has_sentence else err)

    def _fault(self, event: str, err: Exception) -> float:
        self._faults += 1
        is_news = event == "service.failed" or not self._is_away  # an outage is one event, not one per attempt
        self._is_away = self._is_away or event == "store.unavailable"
        if is_news:
            self.events.emit(event, 0, service=self.name, error=str(err))
        longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._faults, 10))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads the retries of many nodes
