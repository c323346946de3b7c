"""Node: one process's services, started together, drained and stopped together, and listed in the store."""

from __future__ import annotations

import logging
import os
import socket
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.engine.executors.capture import capture
from rota.engine.scheduling.partition import Partition, partition_of
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.service import Service
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.clock_watch import ClockWatch
from rota.engine.upkeep.pruner import Pruner
from rota.engine.upkeep.rescuer import Rescuer, free_jobs_of
from rota.engine.upkeep.tenant_sync import TenantSync
from rota.engine.worker.leases import LeaseKeeper
from rota.engine.worker.log_keeper import LogKeeper
from rota.engine.worker.worker import Worker, WorkerSettings
from rota.errors import StoreError
from rota.model.names import new_id
from rota.store.contract import Node as NodeRecord
from rota.store.contract import Retention

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.engine.events import Events
    from rota.store.contract import Store
    from rota.tasks.task import Registry

log = logging.getLogger("rota.node")

BEAT = 5.0
DRAIN_FOR = 25.0


class NodeSettings(Struct, frozen=True, kw_only=True):
    """What a node runs."""

    worker: bool = True
    scheduler: bool = True
    work: WorkerSettings = WorkerSettings()
    retention: Retention = Retention()
    drain_for: float = DRAIN_FOR
    app: str = ""
    version: str = ""


class Node:
    """The services of one process."""

    def __init__(self, store: Store, registry: Registry, events: Events, settings: NodeSettings) -> None:
        self.settings = settings
        self.events = events
        self.clock = StoreClock(store.now, step=store.features.clock_step)
        self._store = store
        self._random = Random()  # noqa: S311 - ids and jitter
        self.id = f"{socket.gethostname()}-{os.getpid()}-{self._random.getrandbits(48):012x}"
        self.worker: Worker | None = None
        self.services: list[Service] = []
        self._partition = Partition()
        self.tasks = registry.names()
        self._build(registry)

    def start(self) -> None:
        self.events.emit("node.starting", self.clock.now(), node=self.id)
        if self.worker is not None:
            capture.begin()
        for service in self.services:
            service.start()
        for service in self.services:
            service.started.wait()
        log.info("node %s started: %s", self.id, ", ".join(service.name for service in self.services))
        self.events.emit("node.started", self.clock.now(), node=self.id)

    def stop(self, *, drain_for: float | None = None) -> None:
        """Stop claiming and firing at once, wait for what runs, hand back what is left, then end."""
        grace = self.settings.drain_for if drain_for is None else drain_for
        for service in self.services:
            if isinstance(service, (Scheduler, Rescuer, Pruner, TenantSync, ClockWatch)):
                service.stop()
        if self.worker is not None:
            self._drain(self.worker, grace)
        for service in self.services:
            service.stop()
        for service in self.services:
            service.join(timeout=5.0)
        if self.worker is not None:
            capture.end()
        self._leave()
        log.info("node %s stopped", self.id)

    def hurry(self) -> None:
        """Wait no longer: hand everything back now, and claim none of it again."""
        if self.worker is not None:
            self.worker.drain()
            self.worker.give_back()

    @property
    def is_healthy(self) -> bool:
        """Whether every loop has turned lately."""
        return all(service.is_turning for service in self.services)

    @property
    def stuck(self) -> int:
        """Threads that still run what was given up already, and a loop that stands still; only the end of the process
        frees them."""
        return self.worker.threads.stuck + self.worker.loop.stuck if self.worker is not None else 0

    def take_over(self, dead: str, how: str) -> int:
        """Free the jobs of another node, which is known to be dead, without waiting for its leases; how many."""
        freed = free_jobs_of(dead, how, self._store, self.events, self.clock)
        self._store.forget_node(dead)
        return freed

    @property
    def is_moved(self) -> bool:
        """Whether the store is sealed, so that there is no work to be had."""
        return any(service.is_moved for service in self.services)

    def _build(self, registry: Registry) -> None:
        store, events, clock, settings = self._store, self.events, self.clock, self.settings
        if settings.worker:
            self.worker = Worker(
                store, registry, events, clock, holder=self.id, settings=settings.work, random=self._random
            )
            keepers = [LeaseKeeper(store, self.worker, events, clock), LogKeeper(store, self.worker, events, clock)]
            self.services += [self.worker, *keepers]
        if settings.scheduler:
            scheduler = Scheduler(store, events, clock, self._new_id, partition=lambda: self._partition)
            if self.worker is not None:
                scheduler.set_worker(self.worker)
            self.services.append(scheduler)
        self.services += [
            Rescuer(store, events, clock, lease_for=settings.work.lease_for, random=self._random),
            Pruner(store, events, clock, retention=settings.retention),
            TenantSync(store, events, clock, self._new_id),
            ClockWatch(store, events, clock, self._new_id, node_id=self.id),
            Heartbeat(self._store, self, self.tasks),
        ]

    def update_partition(self, nodes: Sequence[NodeRecord]) -> None:
        """Hear who else is there."""
        self._partition = partition_of(self.id, nodes, self.clock.now())

    def _new_id(self) -> str:
        return new_id(self._random, self.clock.now())

    def _drain(self, worker: Worker, grace: float) -> None:
        worker.drain()
        if not worker.drained.wait(grace):
            log.warning("still running after %g s, and handed back: %s", grace, ", ".join(sorted(worker.runs)))
            worker.give_back()
            worker.wake()
            worker.drained.wait(5.0)

    def _leave(self) -> None:
        try:
            self._store.forget_node(self.id)
            self.events.emit("node.stopped", self.clock.now(), node=self.id)
        except StoreError as err:
            log.warning("could not sign off from the store: %s", err)


class Heartbeat(Service):
    """Says every few seconds that this node is alive, and what it does."""

    name = "heartbeat"

    def __init__(self, store: Store, node: Node, tasks: tuple[str, ...]) -> None:
        super().__init__(node.events, node.clock)
        self._store = store
        self._node = node
        self._tasks = tasks
        self._started_at = 0

    def turn(self) -> float:
        self._started_at = self._started_at or self.clock.now()
        settings, worker = self._node.settings, self._node.worker
        roles = [role for role, wanted in (("worker", settings.worker), ("scheduler", settings.scheduler)) if wanted]
        record = NodeRecord(
            id=self._node.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            roles=tuple(roles),
            queues=settings.work.queues if settings.worker else (),
            tasks=self._tasks,
            concurrency=settings.work.concurrency if settings.worker else 0,
            running=len(worker.runs) if worker else 0,
            app=settings.app,
            version=settings.version,
            started_at=self._started_at,
        )
        asked_at = self.clock.monotonic()
        self.clock.sync(self._store.beat(record), asked_at)
        if settings.scheduler:
            self._node.update_partition(self._store.list_nodes())
        return BEAT
