"""Injects faults into the calls that a process makes to its store.

Before or after the commit the process may die or the connection may break. The call may be sent twice. The caller may
be delayed while others continue, or its whole process may be frozen for longer than a lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rota.errors import StoreUnavailable
from rota.testing.simulation.notify import SimulatedListener
from rota.testing.simulation.relay import Relay, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from rota.store.contract import Channel, Listener
    from rota.testing.simulation.clock import SimulatedClock
    from rota.testing.simulation.history import Recorder

LONGEST_CALL = 3_000  # microseconds that a call takes at most

_REPEATABLE = frozenset(
    {"add_jobs", "exchange", "extend_leases", "rescue_jobs", "fire", "prune", "edit_schedules", "change_jobs"}
)


class Crash(BaseException):
    """The process has died. (Not an Exception: nothing in it may catch this.)"""


class Rates(NamedTuple):
    """How likely each fault is, per call."""

    crash_before: float = 0.006
    crash_after: float = 0.008
    cut_before: float = 0.015
    cut_after: float = 0.025
    repeat: float = 0.015
    delay: float = 0.06  # the caller waits while others continue
    freeze: float = 0.012  # its whole process is frozen


NO_FAULTS = Rates(0, 0, 0, 0, 0, 0, 0)


class Process:
    """A simulated process: its services die, freeze and lose their connection together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.service = ""  # the one of its services that is calling
        self.is_dead = False
        self.is_frozen = False

    @property
    def caller(self) -> str:
        return f"{self.name}/{self.service}" if self.service else self.name


class Meanwhile(Protocol):
    """Lets other processes continue while one is delayed."""

    def delay(self, process: Process) -> None: ...

    def freeze(self, process: Process) -> None: ...


class FaultPlan:
    """Decides which faults occur: one for the whole simulation, so that they can be stopped."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rates = Rates()
        self.is_out = False  # no process reaches the store
        self.seen: dict[str, int] = {}

    def occurs(self, fault: str, rate: float) -> bool:
        if not rate or self.random.random() >= rate:
            return False
        self.seen[fault] = self.seen.get(fault, 0) + 1
        return True


class FaultyStore(Relay):
    """The store as one process sees it."""

    def __init__(
        self, inner: Recorder, process: Process, fault_plan: FaultPlan, clock: SimulatedClock, meanwhile: Meanwhile
    ) -> None:
        super().__init__(inner)
        self._recorder = inner
        self._process = process
        self._fault_plan = fault_plan
        self._clock = clock
        self._meanwhile = meanwhile
        self.listeners: dict[str, SimulatedListener] = {}  # by the service that listens

    def at(self, now: int | None) -> int | None:
        return self._clock.now() if now is None else now

    def listen(self, channel: Channel) -> Listener:
        listener = super().listen(channel)
        assert isinstance(listener, SimulatedListener)
        self.listeners[self._process.service] = listener
        return listener

    def relay(self, verb: str, args: tuple[Any, ...], call: Callable[[], Reply]) -> Reply:  # noqa: ARG002 - for others
        rates = self._fault_plan.rates
        self._delay(rates)
        self._break("before", rates.crash_before, rates.cut_before)
        reply = self._call(call)
        if verb in _REPEATABLE and self._fault_plan.occurs("repeat", rates.repeat):
            reply = self._call(call)
        self._delay(rates)
        self._break("after", rates.crash_after, rates.cut_after)
        return reply

    def _call(self, call: Callable[[], Reply]) -> Reply:
        self._clock.advance(1 + int(self._fault_plan.random.random() * LONGEST_CALL))
        self._recorder.actor = self._process.caller
        return call()

    def _delay(self, rates: Rates) -> None:
        if self._fault_plan.occurs("freeze", rates.freeze):
            self._meanwhile.freeze(self._process)
        elif self._fault_plan.occurs("delay", rates.delay):
            self._meanwhile.delay(self._process)
        if self._process.is_dead:
            raise Crash

    def _break(self, when: str, crash: float, cut: float) -> None:
        if self._fault_plan.occurs(f"crash {when}", crash):
            raise Crash
        if self._fault_plan.is_out or self._fault_plan.occurs(f"cut {when}", cut):
            raise StoreUnavailable(f"the connection broke {when} the commit")
