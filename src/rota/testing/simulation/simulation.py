"""Runs several nodes over one memory store, one move at a time, as a seed decides.

A step is one move: a service turns, a run ends, an operator does something by hand, or, if there is nothing to do, time
passes. A process that is delayed within a store call stays on the stack while the others continue.
"""

from __future__ import annotations

import logging
import traceback
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from rota.engine.events import Events
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND
from rota.testing.simulation.checks.progress import NEVER_FAILS, NOT_STUCK
from rota.testing.simulation.checks.violation import Violation
from rota.testing.simulation.clock import START, SimulatedClock
from rota.testing.simulation.executor import NEVER, Endings
from rota.testing.simulation.faults import NO_FAULTS, Crash, FaultPlan, FaultyStore, Process
from rota.testing.simulation.history import Recorder, WatchedMemoryStore
from rota.testing.simulation.nodes import LEASE, Actor, Node, Role
from rota.testing.simulation.operations import EVERYWHERE, QUEUES, Operator, registry_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.engine.events import Event
    from rota.testing.simulation.executor import Active

DEEPEST = 3  # processes that are delayed at once
ROLES = (Role(QUEUES, 2, has_scheduler=True), Role(QUEUES[:1], 3, has_scheduler=False), Role(QUEUES, 2, True))  # noqa: FBT003
RECOVERY = 3 * LEASE  # from the last fault on, until everything must be in time again
OBSERVED_FOR = 25 * SECOND  # without faults, while schedules still fire
END_WITHIN = 900 * SECOND  # within which all jobs must have ended, once no schedule fires
MOST_LAST_STEPS = 20_000


class Moves(NamedTuple):
    """The services and runs that can move now, and when the next one can."""

    services: list[Actor]
    runs: list[tuple[Node, Active]]
    next_at: int


class Simulation:
    """The nodes, the store, the clock and the faults of one seed."""

    def __init__(self, seed: int, *, trace: bool = False) -> None:
        self.seed = seed
        self.step = 0
        self.random = Random(seed)  # noqa: S311 - a seed is the point
        self.clock = SimulatedClock()
        self.store = WatchedMemoryStore(self.clock.now)
        self.recorder = Recorder(self.store, self.store, self.clock.now)
        self.fault_plan = FaultPlan(self.random)
        self.endings = Endings(self.random)
        self.events = Events()
        self.faults: list[Violation] = []  # violations that were seen while the engine ran
        self.refused = 0  # writes that came too late, as workers count them
        self.fault_free_from = NEVER  # no more faults
        self.recovered_from = NEVER  # and no more consequences of faults
        self._started = 0
        self._depth = 0
        self._steps_left = 0
        self._trace = trace
        self.operator = Operator(self._reach(Process("operator")), self.clock, self.random)
        self.nodes: list[Node] = [self._start_node(number) for number in range(len(ROLES))]
        self.events.on("job.refused", self._note_refusal)

    def run(self, steps: int) -> None:
        """Run so many steps with faults, then some without, then until all jobs have ended."""
        with without_logs(logging.getLogger("rota")):
            self._steps_left = steps
            self.operator.prepare()
            while self._steps_left > 0:
                self.take_step()
            self._stop_faults()
            self._end_all_jobs()

    # One step.

    def take_step(self) -> None:
        self._begin_step()
        self._steps_left -= 1
        chance = self.random.random()
        if chance < 0.12:
            self._say("operator acts")
            self.operator.act()
        elif chance < (0.22 if self.fault_plan.is_out else 0.122):
            self.fault_plan.is_out = not self.fault_plan.is_out
            self._say(f"the store is {'out of reach' if self.fault_plan.is_out else 'back'}")
        elif chance > 0.99:
            self._kill(self.random.choice(self.nodes))
        else:
            self._move()

    def _begin_step(self) -> None:
        self.step += 1
        self.recorder.step = self.step

    def _move(self) -> None:
        moves = self._moves()
        number = len(moves.services) + len(moves.runs)
        if not number:
            self._let_time_pass(moves.next_at)
            return
        chosen = int(self.random.random() * number)
        if chosen < len(moves.services):
            self._turn(moves.services[chosen])
        else:
            node, active = moves.runs[chosen - len(moves.services)]
            self._say(f"{node.name}: run of {active.run.job.id[-6:]} ends")
            node.executor.end(active)

    def _moves(self) -> Moves:
        now = self.clock.now()
        services: list[Actor] = []
        runs: list[tuple[Node, Active]] = []
        next_at = NEVER
        for node in self.nodes:
            if node.process.is_frozen:
                continue
            woken = [name for name, listener in node.store.listeners.items() if listener.was_woken]
            for actor in node.actors:
                if actor.is_busy:
                    continue
                if actor.is_ready(now) or (woken and actor.service.name in woken):
                    services.append(actor)
                elif actor.next_at < next_at:
                    next_at = actor.next_at
            for active in node.executor.active:
                due_at = active.due_at
                if due_at <= now:
                    runs.append((node, active))
                elif due_at < next_at:
                    next_at = due_at
        return Moves(services, runs, next_at)

    def _let_time_pass(self, next_at: int) -> None:
        now = self.clock.now()
        soonest = next_at if next_at < NEVER else now + SECOND
        self.clock.advance_to(min(soonest, now + 5 * SECOND) + int(self.random.random() * 1000))

    # One turn of one service.

    def _turn(self, actor: Actor) -> None:
        self._say(f"{actor.name} turns")
        if actor.listener is not None:
            actor.listener.was_woken = False
        actor.next_at = NEVER
        try:
            pause = self._guarded_turn(actor)
        except Crash:
            self._kill(actor.node)
            return
        actor.next_at = min(actor.next_at, self.clock.now() + int(pause * SECOND))

    def _guarded_turn(self, actor: Actor) -> float:
        """Handle the faults of a turn as the loop of a service does, in simulated time."""
        process = actor.node.process
        before, process.service = process.service, actor.service.name
        actor.is_busy = True
        try:
            pause = actor.service.turn()
        except StoreUnavailable:
            return self.random.uniform(0.05, 2.0)
        except Exception:  # noqa: BLE001 - every error is a violation
            self.faults.append(Violation(NEVER_FAILS, self.step, f"{actor.name} raised\n{traceback.format_exc()}"))
            return 1.0
        finally:
            actor.is_busy = False
            process.service = before
        self._check_worker(actor)
        return pause

    def _check_worker(self, actor: Actor) -> None:
        """Check that the worker holds its runs, and reports those that have ended."""
        node = actor.node
        texts = [f"{node.name} runs job {run.job.id} and has forgotten it" for run in node.forgotten()]
        if actor is node.actors[0]:
            texts += [f"{node.name} keeps job {run.job.id}, which has ended there" for run in node.unreported()]
        self.faults += [Violation(NOT_STUCK, self.step, text) for text in texts]

    # Processes start and die.

    def _start_node(self, number: int) -> Node:
        self._started += 1
        process = Process(f"node{number}.{self._started}")
        tasks = (*EVERYWHERE, "rare") if number == 0 else EVERYWHERE
        return Node(
            process,
            ROLES[number],
            self._reach(process),
            registry_of(tasks),
            self.events,
            self.clock,
            self.endings,
            self.random,
        )

    def _kill(self, node: Node) -> None:
        if node.is_dead:
            return
        self._say(f"{node.name} dies")
        node.die()
        number = self.nodes.index(node)
        self.nodes[number] = self._start_node(number)

    def _reach(self, process: Process) -> FaultyStore:
        return FaultyStore(self.recorder, process, self.fault_plan, self.clock, self)

    # While a process is delayed.

    def delay(self, process: Process) -> None:
        """One thread waits for its reply; all others continue."""
        with self._nested() as may:
            if may:
                self._say(f"{process.name} waits within a call")
                for _ in range(min(self.random.randint(1, 6), self._steps_left)):
                    self.take_step()

    def freeze(self, process: Process) -> None:
        """A process freezes, often for longer than its leases."""
        with self._nested() as may:
            if not may or process.is_frozen:
                return
            until = self.clock.now() + int(self.random.uniform(0.2, 2.5) * LEASE)
            self._say(f"{process.name} freezes")
            process.is_frozen = True
            steps = 60
            while steps and self._steps_left > 0 and self.clock.now() < until:
                steps -= 1
                self.take_step()
            self.clock.advance_to(until)
            process.is_frozen = False

    @contextmanager
    def _nested(self) -> Iterator[bool]:
        self._depth += 1
        try:
            yield self._depth <= DEEPEST
        finally:
            self._depth -= 1

    # The end.

    def _stop_faults(self) -> None:
        """Stop all faults, replace every node, and let the system run undisturbed."""
        self.fault_plan.rates = NO_FAULTS
        self.fault_plan.is_out = False
        self.endings.end_well = True
        for node in list(self.nodes):
            self._kill(node)
        self.operator.open_everything()
        self.fault_free_from = self.clock.now()
        self.recovered_from = self.fault_free_from + RECOVERY
        while self.clock.now() < self.recovered_from + OBSERVED_FOR:
            self._undisturbed_step()

    def _end_all_jobs(self) -> None:
        self.operator.close_schedules()
        end = self.clock.now() + END_WITHIN
        steps = MOST_LAST_STEPS
        while self.clock.now() < end and steps and self.store.has_live_jobs:
            self._undisturbed_step()
            steps -= 1

    def _undisturbed_step(self) -> None:
        self._begin_step()
        self._move()

    def _note_refusal(self, event: Event) -> None:
        del event
        self.refused += 1

    def _say(self, text: str) -> None:
        if self._trace:
            now = (self.clock.now() - START) / SECOND
            print(f"{self.step:5} {now:10.3f} {'  ' * self._depth}{text}")  # noqa: T201 - a trace is for reading


@contextmanager
def without_logs(logger: logging.Logger) -> Iterator[None]:
    """Thousands of injected faults need no log lines."""
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
