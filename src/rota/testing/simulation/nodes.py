"""Nodes: the real services of one process, each stepped by the simulation."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.pruner import Pruner
from rota.engine.upkeep.rescuer import Rescuer
from rota.engine.worker.leases import LeaseKeeper
from rota.engine.worker.log_keeper import LogKeeper
from rota.engine.worker.worker import Worker, WorkerSettings
from rota.model.micros import SECOND
from rota.model.names import new_id
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
    succeeded_for=20 * SECOND, failed_for=90 * SECOND, cancelled_for=40 * SECOND, most_finished=200, nodes_for=SECOND
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

    @property
    def listener(self) -> SimulatedListener | None:
        return self.node.store.listeners.get(self.service.name)


class SimulatedWorker(Worker):
    """The real worker, whose wake-ups reach the simulation."""

    actor: Actor | None = None

    def wake(self) -> None:
        super().wake()
        if self.actor is not None:
            self.actor.next_at = 0


class Role(NamedTuple):
    """What a process is there for."""

    queues: tuple[str, ...]
    concurrency: int
    has_scheduler: bool


class Node:
    """One process: worker with its keepers, rescuer, pruner, and a scheduler where it should have one."""

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
        self.worker = SimulatedWorker(
            store,
            registry,
            events,
            store_clock,
            holder=self.name,
            settings=WorkerSettings(queues=role.queues, concurrency=role.concurrency, lease_for=LEASE),
            random=mine,
            threads=self.executor,
            loop=self.executor,
        )
        services: list[Service] = [
            self.worker,
            LeaseKeeper(store, self.worker, events, store_clock),
            LogKeeper(store, self.worker, events, store_clock),
            Rescuer(store, events, store_clock, lease_for=LEASE, random=mine),
            Pruner(store, events, store_clock, retention=KEPT),
        ]
        if role.has_scheduler:
            scheduler = Scheduler(store, events, store_clock, lambda: new_id(mine, clock.now()))
            scheduler.set_worker(self.worker)
            services.append(scheduler)
        self.actors = [Actor(self, service, clock.now()) for service in services]
        self.worker.actor = self.actors[0]

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
        """Runs that still count and that the worker does not know: nobody would renew their leases."""
        for active in self.executor.active:
            if not active.run.is_over and self.worker.runs.get(active.run.job.id) is not active.run:
                yield active.run

    def unreported(self) -> list[Run]:
        """Asked after each whole turn of the worker: runs that ended long ago, and whose leases are still renewed."""
        ended = [run for run in self.worker.runs.values() if run.is_over]
        self._ended = {run: self._ended.get(run, 0) + 1 for run in ended}
        return [run for run, turns in self._ended.items() if turns == PATIENCE + 1]
