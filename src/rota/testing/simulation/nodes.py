"""Builds nodes of real services, which the simulation turns one at a time."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from rota.engine.services import NodeSettings, build_services
from rota.engine.store_clock import StoreClock
from rota.engine.worker.worker import Executors, WorkerSettings
from rota.model.micros import SECOND
from rota.store.contract import Retention
from rota.testing.simulation.executor import SimulatedExecutor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.engine.events import Events
    from rota.engine.executors.run import Run
    from rota.engine.service import Service
    from rota.tasks.task import Registry
    from rota.testing.simulation.clock import SimulatedClock
    from rota.testing.simulation.executor import Endings
    from rota.testing.simulation.faults import FaultyStore, Process
    from rota.testing.simulation.notify import SimulatedListener

LEASE = 10 * SECOND
KEPT = Retention(
    succeeded_for=20 * SECOND,
    failed_for=90 * SECOND,
    cancelled_for=40 * SECOND,
    most_finished=200,
    nodes_for=30 * SECOND,
)
PATIENCE = 3  # turns of a worker after which a run that has ended must be reported


class Actor:
    """A service and when it wants to turn next."""

    def __init__(self, node: Node, service: Service, now: int) -> None:
        self.node = node
        self.service = service
        self.name = f"{node.name}/{service.name}"
        self.next_at = now
        self.is_busy = False  # in the middle of a turn

    def is_ready(self, now: int) -> bool:
        """Whether it may turn: its pause is over, or its worker was woken."""
        if self.service is self.node.worker and self.node.worker.is_woken:
            return True
        return self.next_at <= now

    @property
    def listener(self) -> SimulatedListener | None:
        return self.node.store.listeners.get(self.service.name)


class Role(NamedTuple):
    """What a process runs."""

    queues: tuple[str, ...]
    concurrency: int
    has_scheduler: bool


class Node:
    """One process, with the services that a real node has; a scheduler only if its role says so."""

    def __init__(
        self,
        process: Process,
        role: Role,
        store: FaultyStore,
        registry: Registry,
        events: Events,
        clock: SimulatedClock,
        endings: Endings,
        random: Random,
    ) -> None:
        self.name = process.name
        self.process = process
        self.store = store
        self._ended: dict[Run, int] = {}  # runs that have ended, and how often their worker has turned since
        mine = Random(random.getrandbits(64))  # noqa: S311 - ids and jitter of this node, by the seed
        store_clock = StoreClock(store.now, clock.monotonic)
        self.executor = SimulatedExecutor(role.concurrency, clock, endings)
        work = WorkerSettings(queues=role.queues, concurrency=role.concurrency, lease_for=LEASE)
        services = build_services(
            store,
            registry,
            events,
            store_clock,
            NodeSettings(scheduler=role.has_scheduler, work=work, retention=KEPT),
            node_id=self.name,
            random=mine,
            executors=Executors(self.executor, self.executor, self.executor),
        )
        assert services.worker is not None
        self.worker = services.worker
        self.actors = [Actor(self, service, clock.now()) for service in services.all]

    @property
    def is_dead(self) -> bool:
        return self.process.is_dead

    @property
    def is_frozen(self) -> bool:
        return self.process.is_frozen

    def die(self) -> None:
        self.process.is_dead = True
        for listener in self.store.listeners.values():
            listener.close()

    def forgotten(self) -> Iterator[Run]:
        """Runs that are not over and that the worker does not hold, so that their leases are not renewed."""
        for active in self.executor.active:
            if not active.run.is_over and self.worker.runs.get(active.run.job.id) is not active.run:
                yield active.run

    def unreported(self) -> list[Run]:
        """Runs that ended several turns ago, and are still renewed. Call it after each whole turn of the worker."""
        ended = [run for run in self.worker.runs.values() if run.is_over]
        self._ended = {run: self._ended.get(run, 0) + 1 for run in ended}
        return [run for run, turns in self._ended.items() if turns == PATIENCE + 1]
