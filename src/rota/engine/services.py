"""Builds the services of one node from a store, a clock and settings.

A node, the testing kit and the simulation all use this: what is tested is wired like what runs in production.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rota.engine.heartbeat import Heartbeat
from rota.engine.scheduling.scheduler import Scheduler
from rota.engine.upkeep.clock_watch import ClockWatch
from rota.engine.upkeep.pruner import Pruner
from rota.engine.upkeep.rescuer import Rescuer
from rota.engine.upkeep.tenant_sync import TenantSync
from rota.engine.worker.leases import LeaseKeeper
from rota.engine.worker.log_keeper import LogKeeper
from rota.engine.worker.worker import Worker, WorkerSettings
from rota.model.jobs.job import new_id
from rota.store.contract import Node, Retention

if TYPE_CHECKING:
    from random import Random

    from rota.engine.events import Events
    from rota.engine.service import Service
    from rota.engine.store_clock import StoreClock
    from rota.engine.worker.worker import Executors
    from rota.store.contract import Store
    from rota.tasks.task import Registry

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


class Services(NamedTuple):
    """The services of one node. Without a worker or a scheduler, theirs are None."""

    worker: Worker | None
    lease_keeper: LeaseKeeper | None
    log_keeper: LogKeeper | None
    scheduler: Scheduler | None
    rescuer: Rescuer
    pruner: Pruner
    tenant_sync: TenantSync
    clock_watch: ClockWatch
    heartbeat: Heartbeat

    @property
    def all(self) -> list[Service]:
        """In the order in which they start."""
        return [service for service in self if service is not None]

    @property
    def stopped_first(self) -> list[Service]:
        """Everything that a worker that is draining does not need."""
        first = (self.scheduler, self.rescuer, self.pruner, self.tenant_sync, self.clock_watch)
        return [service for service in first if service is not None]


def build_services(
    store: Store,
    registry: Registry,
    events: Events,
    clock: StoreClock,
    settings: NodeSettings,
    *,
    node_id: str,
    random: Random,
    executors: Executors | None = None,
    worker_type: type[Worker] = Worker,
) -> Services:
    """Build all services of a node; none is started."""

    def make_id() -> str:
        return new_id(random, clock.now())

    work = settings.work
    worker = lease_keeper = log_keeper = scheduler = runs = None
    if settings.worker:
        worker = worker_type(
            store, registry, events, clock, holder=node_id, settings=work, random=random, executors=executors
        )
        runs = worker.runs
        lease_keeper = LeaseKeeper(store, runs, events, clock, holder=node_id, lease_for=work.lease_for)
        log_keeper = LogKeeper(store, runs, events, clock, holder=node_id)
    if settings.scheduler:
        idle_worker = worker if work.early_by else None  # a worker that claims nothing early needs no early firing
        scheduler = Scheduler(store, events, clock, make_id, worker=idle_worker)
    record = _record(node_id, registry.names(), settings)
    return Services(
        worker=worker,
        lease_keeper=lease_keeper,
        log_keeper=log_keeper,
        scheduler=scheduler,
        rescuer=Rescuer(store, events, clock, lease_for=work.lease_for, random=random),
        pruner=Pruner(store, events, clock, retention=settings.retention),
        tenant_sync=TenantSync(store, events, clock, make_id),
        clock_watch=ClockWatch(store, events, clock, make_id, node_id=node_id),
        heartbeat=Heartbeat(store, events, clock, record, runs=runs, scheduler=scheduler),
    )


def _record(node_id: str, tasks: tuple[str, ...], settings: NodeSettings) -> Node:
    roles = [role for role, runs in (("worker", settings.worker), ("scheduler", settings.scheduler)) if runs]
    return Node(
        id=node_id,
        host=socket.gethostname(),
        pid=os.getpid(),
        roles=tuple(roles),
        queues=settings.work.queues if settings.worker else (),
        tasks=tasks,
        concurrency=settings.work.concurrency if settings.worker else 0,
        app=settings.app,
        version=settings.version,
    )
