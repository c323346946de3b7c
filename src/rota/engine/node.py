"""Starts the services of one process together, drains and stops them together, and lists the node in the store."""

from __future__ import annotations

import logging
import os
import socket
import time
from random import Random
from typing import TYPE_CHECKING, Protocol

from rota.engine.executors.capture import capture
from rota.engine.own_socket import OwnSocket
from rota.engine.services import build_services
from rota.engine.store_clock import StoreClock
from rota.engine.upkeep.rescuer import free_jobs_of
from rota.errors import StoreError
from rota.inspector.health import ROLES
from rota.inspector.own_nodes import NodeAnswer

if TYPE_CHECKING:
    from rota.engine.events import Events
    from rota.engine.service import Service
    from rota.engine.services import NodeSettings
    from rota.engine.worker.worker import Worker
    from rota.store.contract import Store
    from rota.tasks.task import Registry

log = logging.getLogger("rota.node")


class Companion(Protocol):
    """What runs beside the services of a node and ends with it: the queues of documents."""

    @property
    def running(self) -> int: ...

    def ask_to_stop(self) -> None: ...

    def stop(self, seconds: float) -> None: ...

    def stop_now(self) -> None: ...


class Node:
    """The services of one process."""

    def __init__(self, store: Store, registry: Registry, events: Events, settings: NodeSettings) -> None:
        self.settings = settings
        self.events = events
        self.clock = StoreClock(store.now, step=store.features.clock_step)
        self._store = store
        random = Random()  # noqa: S311 - ids and jitter
        self.id = f"{socket.gethostname()}-{os.getpid()}-{random.getrandbits(48):012x}"
        self.tasks = registry.names()
        built = build_services(store, registry, events, self.clock, settings, node_id=self.id, random=random)
        self.worker: Worker | None = built.worker
        self.services: list[Service] = built.all
        self.companions: list[Companion] = []
        self._stopped_first = built.stopped_first
        self._heartbeat = built.heartbeat
        self._is_stopping = False
        self._own_socket = OwnSocket(self.id, self._answer)

    def add(self, service: Service) -> None:
        """Add a service before the start; it is stopped with those that a draining worker does not need."""
        self.services.append(service)
        self._stopped_first.append(service)

    def start(self) -> None:
        self.events.emit("node.starting", self.clock.now(), node=self.id)
        if self.worker is not None:
            capture.begin()
        for service in self.services:
            service.start()
        for service in self.services:
            service.started.wait()
        self._own_socket.start()
        log.info("node %s started: %s", self.id, ", ".join(service.name for service in self.services))
        self.events.emit("node.started", self.clock.now(), node=self.id)

    def stop(self, *, drain_for: float | None = None) -> None:
        """Stop claiming and firing at once, wait for running jobs, return those that are left, then end."""
        self._is_stopping = True
        grace = self.settings.drain_for if drain_for is None else drain_for
        ends_at = time.monotonic() + grace
        for companion in self.companions:
            companion.ask_to_stop()
        if self.running:
            self._heartbeat.show_draining()
        for service in self._stopped_first:
            service.stop()
        if self.worker is not None:
            self._drain(self.worker, grace)
        for companion in self.companions:
            companion.stop(max(0.0, ends_at - time.monotonic()))
        for service in self.services:
            service.stop()
        for service in self.services:
            service.join(timeout=5.0)
        if self.worker is not None:
            capture.end()
        self._leave()
        self._own_socket.close()
        log.info("node %s stopped", self.id)

    def stop_now(self) -> None:
        """Wait no longer: return all jobs now, and claim none of them again."""
        for companion in self.companions:
            companion.stop_now()
        if self.worker is not None:
            self.worker.drain()
            self.worker.return_running()

    @property
    def is_healthy(self) -> bool:
        """Whether no service is stuck."""
        return all(service.is_turning for service in self.services)

    @property
    def is_well(self) -> bool:
        """Whether no service is stuck, and every one of them reached the store at its last call."""
        return self.is_healthy and not any(service.is_away for service in self.services)

    @property
    def running(self) -> int:
        """How many jobs run, and handlers of documents."""
        jobs = 0 if self.worker is None else len(self.worker.runs)
        return jobs + sum(companion.running for companion in self.companions)

    @property
    def stuck(self) -> int:
        """Threads that still run an abandoned job, and a blocked event loop; only the end of the process frees them."""
        if self.worker is None:
            return 0
        return self.worker.executors.threads.stuck + self.worker.executors.loop.stuck

    def take_over(self, dead: str, how: str) -> int:
        """Free the jobs of another node, which is known to be dead, without waiting for its leases; how many."""
        freed = free_jobs_of(dead, how, self._store, self.events, self.clock)
        self._store.forget_node(dead)
        return freed

    @property
    def is_sealed(self) -> bool:
        """Whether the store is sealed, so that it accepts no new work."""
        return any(service.is_sealed for service in self.services)

    def _answer(self) -> NodeAnswer:
        """Whether this node works. One that drains does: its services end one after the other."""
        roles = tuple(service.name for service in self.services if service.name in ROLES)
        if self._is_stopping:
            return NodeAnswer(roles=roles, state="draining")
        stuck = tuple(service.name for service in self.services if not service.is_turning)
        return NodeAnswer(roles=roles, state="stuck" if stuck else "ok", stuck=stuck)

    def _drain(self, worker: Worker, grace: float) -> None:
        worker.drain()
        if not worker.drained.wait(grace):
            jobs = ", ".join(sorted(worker.runs))
            if jobs:
                log.warning("jobs still running after %g s; returning them to their queues: %s", grace, jobs)
            else:
                log.warning("no job is running, and the store has not answered for %g s; stopping", grace)
            worker.return_running()
            worker.wake()
            worker.drained.wait(5.0)

    def _leave(self) -> None:
        try:
            self._store.forget_node(self.id)
            self.events.emit("node.stopped", self.clock.now(), node=self.id)
        except StoreError as err:
            log.warning("could not remove this node from the store: %s", err)
