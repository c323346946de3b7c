"""Estimates the store's clock: the time in its last reply, plus the monotonic time since then."""

from __future__ import annotations

import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from rota.model.clock.record import ClockStep
from rota.model.clock.repair import TOLERANCE
from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

STEP = TOLERANCE / SECOND  # seconds; a smaller difference is the network, a slew, or a replica's own clock
MOST_STEPS = 16  # kept until the clock watch takes them

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def time_asleep() -> float:
    """Seconds for which this host was suspended: the monotonic clock stops meanwhile, though no clock was set."""
    return time.clock_gettime(_BOOT_CLOCK) - time.monotonic() if _BOOT_CLOCK is not None else 0.0


class StoreClock:
    """Nodes with wrong clocks neither fire early nor steal leases: they never use their own.

    A reply that cannot be true, given what has passed since the last one, shows that the store's clock was set. Such
    steps are kept in `steps` for the clock watch.
    """

    def __init__(
        self,
        ask: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        step: int = 1,
        asleep: Callable[[], float] | None = None,
    ) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._asleep = asleep or (time_asleep if monotonic is time.monotonic else lambda: 0.0)
        self._behind = (step - 1) / 1e6  # seconds that a reply may be behind the store's true time
        self._offset: float | None = None
        self._most = float("inf")  # the offset that the replies since the last step allow
        self._slept = self._asleep()
        self._lock = Lock()
        self._stepped_at = float("-inf")  # a call that was sent earlier shows a time from before the step
        self._ahead_at = float("-inf")
        self.steps: deque[ClockStep] = deque(maxlen=MOST_STEPS)

    def sync(self, now: int, asked_at: float) -> None:
        """Take over the time of a reply. It was true at some instant since the call: a late reply sets nothing back."""
        with self._lock:
            if asked_at < self._stepped_at:
                return
            known = self._known()
            least = now / 1e6 - self._monotonic()
            most = now / 1e6 + self._behind - asked_at
            if known is None:
                self._offset, self._most = least, most
                return
            is_step = least - self._most >= STEP or known - most >= STEP
            self._offset = min(max(known, least), most)
            self._most = most if least > self._most else min(self._most, most)
            if is_step:
                self._note_step(known, now)

    def now(self) -> int:
        if self._offset is None:
            asked_at = self._monotonic()
            self.sync(self._ask(), asked_at)
        assert self._offset is not None  # noqa: S101 - narrows the type
        return round((self._monotonic() + self._offset) * 1e6)

    def monotonic(self) -> float:
        return self._monotonic()

    def was_set_ahead_within(self, seconds: float) -> bool:
        """Whether the store's clock was set ahead lately: leases then seem to have expired that have not."""
        return self._monotonic() < self._ahead_at + seconds

    def _known(self) -> float | None:
        """The offset. While the host is suspended, the store's clock runs and the monotonic clock does not."""
        slept = self._asleep() - self._slept
        if slept < 1.0 or self._offset is None:
            return self._offset
        self._slept += slept
        self._most += slept
        return self._offset + slept

    def _note_step(self, known: float, now: int) -> None:
        self._stepped_at = self._monotonic()
        step = ClockStep(was=round((self._stepped_at + known) * 1e6), at=now)
        if not step.is_back:
            self._ahead_at = self._stepped_at
        self.steps.append(step)
