"""Wires one app's parts together: its tasks, settings, store, events and the objects behind `app.jobs` and the like.

Users see `App`. The command line, the web package and the testing kit reach what only the inside needs through
`rota.app.internals(app)`, which answers this object.
"""

from __future__ import annotations

import os
import threading
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rota.client.jobs import Jobs
from rota.client.schedules import Schedules
from rota.clock import utc_micros
from rota.config.loader import Resolved, resolve
from rota.deploy.deploy import deploy_of, warn_of_overruled
from rota.engine.events import Events
from rota.model.codecs import Codecs
from rota.model.names import check_name, new_id
from rota.model.redaction import Redaction
from rota.observe.logs import log_events
from rota.operations.enqueue import one_transaction, send_in_turn, send_within
from rota.store.contract import Retention, Store
from rota.store.urls import absolute, default_store, store_from_client, store_from_url
from rota.tasks.arguments import decode_value
from rota.tasks.job import Job
from rota.tasks.task import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from psycopg_pool import ConnectionPool
    from pymongo import MongoClient
    from redis import Redis
    from redis.cluster import RedisCluster

    from rota.client.aio import Aio
    from rota.client.sources import Sources
    from rota.client.tenants import Tenants
    from rota.config.layers import Layer
    from rota.config.settings import Settings
    from rota.deploy.deploy import Deploy
    from rota.engine.node import Node
    from rota.model.schedule import ScheduleSpec
    from rota.store.contract import Added
    from rota.tasks.task import Request

    Place: TypeAlias = str | Store | Redis | RedisCluster | ConnectionPool[Any] | MongoClient[Any]

_random = Random()  # noqa: S311 - ids guard nothing; its own, because a program may seed the shared one
os.register_at_fork(after_in_child=_random.seed)  # no two processes make the same ids


class Wiring:
    """Everything that one app owns. Settings are read and the store is opened when they are first needed."""

    def __init__(
        self, given: Place | None, *, name: str, version: str, code: Layer, retention: Retention | None
    ) -> None:
        self.name = check_name("app", name)
        self.version = version
        self.registry = Registry()
        self.codecs = Codecs()
        self.events = Events()
        log_events(self.events)
        self.folder = Path.cwd()  # of the default store; a loaded target sets its own
        self.jobs = Jobs(self.open, self._decode_result)
        self.node: Node | None = None  # the services that run in this process
        self.makers: dict[str, Callable[[str], ScheduleSpec]] = {}  # schedules declared in code, given the app's zone
        self._here = self.folder  # where rota.yaml is looked for, even if the process changes its folder
        self._code = code
        self._resolved: Resolved | None = None
        self._given = given
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._retention = retention
        self._aio: Aio | None = None

    # What callers use.

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(self.open, self.jobs, self.new_id, self.settings.tz, self.redaction)

    @cached_property
    def tenants(self) -> Tenants:
        from rota.client.tenants import Tenants  # noqa: PLC0415 - an app without tenants does not pay for it

        return Tenants(self.open, self.new_id)

    @cached_property
    def sources(self) -> Sources:
        from rota.client.sources import Sources  # noqa: PLC0415 - likewise

        return Sources(self.open, self.jobs, self.new_id)

    @property
    def aio(self) -> Aio:
        if self._aio is None:
            from rota.client.aio import Aio  # noqa: PLC0415 - only coroutines pay for it

            self._aio = Aio(self)
        return self._aio

    # Enqueuing.

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Enqueue requests, a batch at a time; each batch is accepted whole or not at all."""
        store = self.open()
        transaction = one_transaction(requests)
        if transaction is None:
            answers = send_in_turn(store, requests, _random)
        else:
            answers = send_within(store, transaction, requests, _random)
        jobs: list[Job[Any]] = []
        for added in answers:
            if self.events.wants("job.enqueued"):
                self._emit_enqueued(requests[len(jobs) : len(jobs) + len(added)], added)
            jobs += [Job(self.jobs, result.id, existed=result.existed) for result in added]
        return jobs

    async def asend(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """As `send`, from a coroutine: a thread of the app's own calls the store."""
        return await self.aio.send(requests)

    # What the app declares.

    @property
    def declared(self) -> dict[str, ScheduleSpec]:
        """The schedules that the code declares, by id."""
        return {name: make(self.settings.tz) for name, make in self.makers.items()}

    @property
    def deploy(self) -> Deploy:
        """All that this version of the app declares, in code and in rota.yaml."""
        return deploy_of(self.name, self.version, self.declared, self.resolved, self.registry)

    # The settings.

    @property
    def resolved(self) -> Resolved:
        """The settings with where each came from; read when first needed."""
        return self.read_settings(resolve) if self._resolved is None else self._resolved

    def read_settings(self, read: Callable[[Path, Layer], Resolved]) -> Resolved:
        """Read them now, by this reader: lint has one that continues after mistakes."""
        found = self._resolved = read(self._here, self._code)
        if not isinstance(self._given, Store):
            warn_of_overruled(self.name, found)
        return found

    @property
    def settings(self) -> Settings:
        return self.resolved.settings

    @cached_property
    def redaction(self) -> Redaction:
        """Decides which arguments and results are shown as "[redacted]"."""
        return Redaction(self.settings.redact)

    @property
    def lease_for(self) -> int:
        """How long a worker owns a job unless it renews the lease (microseconds)."""
        return self.settings.lease

    @property
    def retention(self) -> Retention:
        """How long finished records are kept."""
        return self._retention or self.settings.retention.as_retention()

    # The store.

    def open(self) -> Store:
        """The store, opened when first needed."""
        if self._store is None:
            with self._opening:
                if self._store is None:
                    store = self.find_store()
                    store.open()
                    self._store = store
        return self._store

    @property
    def is_open(self) -> bool:
        return self._store is not None

    def close(self) -> None:
        """Close the store, and end the threads of `aio`."""
        store, self._store = self._store, None
        if store is not None:
            store.close()
        if self._aio is not None:
            self._aio.close()
            self._aio = None

    def use_store(self, store: Place | None) -> Place | None:
        """Use another store than the one that was given, before it is opened; answers the one given before."""
        before, self._given = self._given, store
        return before

    def find_store(self) -> Store:
        """The store that this app would open, unopened."""
        if isinstance(self._given, Store):
            return self._given
        namespace = self.settings.namespace
        if self._given is not None and not isinstance(self._given, str):
            return store_from_client(self._given, namespace=namespace)
        if (url := self.store_url) is not None:
            return store_from_url(url, namespace=namespace)
        return default_store(self.resolved.folder or self.folder, namespace=namespace)

    @property
    def store_url(self) -> str | None:
        """The URL of its store, in a form that another process can use; None if its store has none."""
        if isinstance(self._given, str):
            return absolute(self._given, self.folder)
        found, origin = self.settings.store, self.resolved.origins["store"]
        if self._given is not None or found is None or origin.kind == "code":
            return None
        return absolute(found, origin.folder or Path.cwd())

    def new_id(self) -> str:
        return new_id(_random, utc_micros())

    def _emit_enqueued(self, requests: Sequence[Request], added: Sequence[Added]) -> None:
        now = self.open().now()
        for request, result in zip(requests, added, strict=True):
            self.events.emit("job.enqueued", now, job_id=result.id, task=request.task, existed=result.existed)

    def _decode_result(self, task_name: str, packed: bytes | None) -> Any:
        """A result as the task's return type says, if the task is known here; else as plain JSON."""
        if packed is None:
            return None
        task = self.registry.find(task_name)
        return decode_value(packed, task.signature.returns if task else Any, self.codecs)
