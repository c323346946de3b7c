"""Records every call that reached a store, its reply, and what it changed, in order.

The recorder wraps the store itself, behind all faults: it sees what was committed even if the caller never got the
reply. Checkers are plain functions over the recorded history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from rota.model.jobs.job import Job
from rota.model.schedules.schedule import Schedule
from rota.store.contract import LARGEST_PAGE, JobFilter
from rota.store.memory import MemoryStore
from rota.testing.simulation.notify import SimulatedNotifier
from rota.testing.simulation.relay import READS, Relay, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rota.model.schedules.occurrence import Occurrence
    from rota.store.contract import Store

Thing = TypeVar("Thing")
FAR = 2**53  # microseconds: beyond every instant


class Changed(NamedTuple, Generic[Thing]):
    """One job or schedule before and after a call; None: there was none."""

    before: Thing | None
    after: Thing | None


class Call(NamedTuple):
    """One call that reached the store."""

    number: int
    step: int  # of the simulation
    at: int  # the store's clock
    actor: str
    verb: str
    args: tuple[Any, ...]
    reply: Any
    jobs: tuple[Changed[Job], ...]
    schedules: tuple[Changed[Schedule], ...]


class Pulse(NamedTuple):
    """One call that reached the store, reads too: who called, when, and whether anything changed but lease ends."""

    step: int
    at: int
    actor: str
    did_something: bool


class World(NamedTuple):
    """All jobs and schedules, as they were when a call began."""

    jobs: dict[str, Job]
    schedules: dict[str, Schedule]


class History:
    """Calls in the order in which they reached the store."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.pulses: list[Pulse] = []

    def replay(self) -> Iterator[tuple[Call, World]]:
        """Each call, with the world before it: one object that is updated in place, so read it and do not keep it."""
        world = World({}, {})
        for call in self.calls:
            yield call, world
            _bring_forward(world.jobs, call.jobs)
            _bring_forward(world.schedules, call.schedules)

    def final_world(self) -> World:
        world = World({}, {})
        for call in self.calls:
            _bring_forward(world.jobs, call.jobs)
            _bring_forward(world.schedules, call.schedules)
        return world


class Watch(Protocol):
    """Reports what changed since the last report."""

    def look(self) -> tuple[tuple[Changed[Job], ...], tuple[Changed[Schedule], ...]]: ...


class Recorder(Relay):
    """Records every call that may change something."""

    def __init__(self, inner: Store, watch: Watch, clock: Callable[[], int]) -> None:
        super().__init__(inner)
        self.history = History()
        self.actor = ""  # the process and service that calls, …
        self.step = 0  # … and the step; the simulation sets both
        self._watch = watch
        self._clock = clock

    def relay(self, verb: str, args: tuple[Any, ...], call: Callable[[], Reply]) -> Reply:
        reply = call()
        did_something = False
        if verb not in READS:
            jobs, schedules = self._watch.look()
            calls = self.history.calls
            calls.append(Call(len(calls), self.step, self._clock(), self.actor, verb, args, reply, jobs, schedules))
            did_something = verb == "edit_entries" or (verb != "extend_leases" and bool(jobs or schedules))
        self.history.pulses.append(Pulse(self.step, self._clock(), self.actor, did_something))
        return reply


class WatchedMemoryStore(MemoryStore):
    """A memory store that knows which of its jobs and schedules were changed."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__()
        self._notifier = SimulatedNotifier()
        self._clock = clock
        self._noted_jobs = self._jobs = _Noting[Job]()
        self._noted_schedules = self._schedules = _Noting[Schedule]()

    def now(self) -> int:
        return self._clock()

    @property
    def has_live_jobs(self) -> bool:
        return any(job.is_live for job in self._jobs.values())

    def look(self) -> tuple[tuple[Changed[Job], ...], tuple[Changed[Schedule], ...]]:
        return self._noted_jobs.take(), self._noted_schedules.take()


def all_jobs(store: Store) -> Iterator[Job]:
    """Every job of a store, newest first."""
    cursor: str | None = None
    while True:
        page = store.list_jobs(JobFilter(), cursor=cursor, limit=LARGEST_PAGE)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def all_occurrences(store: Store, schedule_id: str) -> Iterator[Occurrence]:
    cursor: str | None = None
    while True:
        page = store.list_occurrences(schedule_id, 0, FAR, cursor=cursor, limit=LARGEST_PAGE)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


class _Noting(dict[str, Thing]):
    """A dictionary that remembers its values from before they were changed."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, Thing | None] = {}

    def __setitem__(self, name: str, value: Thing) -> None:
        self._before.setdefault(name, self.get(name))
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self._before.setdefault(name, self.get(name))
        super().__delitem__(name)

    def take(self) -> tuple[Changed[Thing], ...]:
        if not self._before:
            return ()
        changed = tuple(Changed(before, self.get(name)) for name, before in self._before.items())
        self._before.clear()
        return changed


def _bring_forward(things: dict[str, Any], changes: tuple[Changed[Any], ...]) -> None:
    for before, after in changes:
        if after is not None:
            things[after.id] = after
        elif before is not None:
            things.pop(before.id, None)
