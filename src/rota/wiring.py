"""Wires one app's parts together: its tasks, settings, store, events and the objects behind `app.jobs` and the like.

Users see `App`. The command line, the web package and the testing kit reach what only the inside needs through
`rota.app.internals(app)`, which answers this object.
"""

from __future__ import annotations

import inspect
import os
import threading
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rota.client.jobs import Jobs, StoreJobReader
from rota.client.locks import Lock
from rota.client.schedules import Schedules
from rota.clock import utc_micros
from rota.config.loader import Resolved, resolve
from rota.deploy.deploy import bring, deploy_of, warn_of_overruled
from rota.engine.events import Events
from rota.errors import BadOption, StoreError
from rota.inspector.changes import list_changes
from rota.model.jobs.codecs import Codecs
from rota.model.jobs.job import new_id
from rota.model.names import check_name
from rota.model.secrets.redaction import Redaction
from rota.observe.logs import log_events
from rota.operations.enqueue import one_transaction, send_in_turn, send_within
from rota.store.contract import Retention, Store
from rota.store.shared import forks
from rota.store.urls import absolute, default_store, store_from_client, store_from_url
from rota.tasks.arguments import decode_value
from rota.tasks.creation import create_through
from rota.tasks.job import InTransaction, Job
from rota.tasks.middleware import check_wraps
from rota.tasks.task import AsyncTask, Registry, Task, default_name, make_options

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime, timedelta
    from typing import TypeAlias

    from psycopg_pool import ConnectionPool
    from pymongo import MongoClient
    from redis import Redis
    from redis.cluster import RedisCluster

    from rota.client.aio import Aio
    from rota.client.alerts import Alerts
    from rota.client.queues import Queues
    from rota.client.sources import Sources
    from rota.client.tenants import Tenants
    from rota.client.tokens import Tokens
    from rota.config.layers import Layer
    from rota.config.settings import Settings
    from rota.deploy.deploy import Deploy
    from rota.documents.client import Documents
    from rota.engine.node import Node
    from rota.inspector.changes import Change
    from rota.model.schedules.schedule import ScheduleSpec
    from rota.operations.live_tasks import LiveTasks
    from rota.store.contract import Added, Page
    from rota.tasks.middleware import Middleware
    from rota.tasks.task import Request, TaskKeywords

    RunCoroutine: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
    StoreArgument: TypeAlias = str | Store | Redis | RedisCluster | ConnectionPool[Any] | MongoClient[Any]

_random = Random()  # noqa: S311 - ids guard nothing; its own, because a program may seed the shared one
os.register_at_fork(after_in_child=_random.seed)  # no two processes make the same ids


class AppStore(forks.Forked):
    """The store of one app: which one it is, and whether it is open."""

    def __init__(self, given: StoreArgument | None, resolved: Callable[[], Resolved]) -> None:
        self.given = given
        self.folder = Path.cwd()  # of the default store; a loaded target sets its own
        self._resolved = resolved
        self._store: Store | None = None
        self._guest: Store | None = None  # used within transactions of callers, and not opened yet
        self.find_instead: Callable[[], Store | None] | None = None  # a framework may have one, as in its tests
        self._opening = threading.Lock()
        self._process = os.getpid()
        forks.register(self)

    def open(self) -> Store:
        """The store, opened when first needed."""
        if self._store is None:
            with self._opening:
                if self._store is None:
                    self._enter_process()
                    store = self._guest or self.find()
                    store.open()
                    self._store, self._guest = store, None
        elif self._process != os.getpid():
            raise _forked_without_hooks()
        return self._store

    def open_within(self, transaction: object) -> Store:
        """The store, ready for writes in a caller's transaction. It may stay closed until the next call."""
        if self._store is not None:
            return self.open()
        with self._opening:
            self._enter_process()
            store = self._store or self._guest or self.find()
            if self._store is None and store.open_within(transaction):
                self._store, self._guest = store, None
            elif self._store is None:
                self._guest = store
        return store

    def after_fork(self) -> None:
        """In a child: a thread of the parent may hold the lock."""
        self._opening = threading.Lock()
        self._process = os.getpid()

    def _enter_process(self) -> None:
        """Detect a fork without Python's hooks, as servers do it, while nothing is open yet."""
        if self._process != os.getpid():
            self._process = os.getpid()
            _random.seed()

    @property
    def is_open(self) -> bool:
        return self._store is not None

    def now(self) -> int:
        """The time by the store's clock; a store that only callers' transactions use stays closed."""
        return (self._store or self._guest or self.open()).now()

    def close(self) -> None:
        store, self._store, self._guest = self._store or self._guest, None, None
        if store is not None:
            store.close()

    def use(self, store: StoreArgument | None) -> StoreArgument | None:
        """Use another store than the one that was given, before it is opened. Returns the one given before."""
        before, self.given = self.given, store
        self._guest = None
        return before

    def find(self) -> Store:
        """The store that the app would open, unopened."""
        if isinstance(self.given, Store):
            return self.given
        if self.find_instead is not None and (instead := self.find_instead()) is not None:
            return instead
        resolved = self._resolved()
        namespace = resolved.settings.namespace
        if self.given is not None and not isinstance(self.given, str):
            return store_from_client(self.given, namespace=namespace)
        if (url := self.url) is not None:
            return store_from_url(url, namespace=namespace)
        return default_store(resolved.folder or self.folder, namespace=namespace)

    @property
    def url(self) -> str | None:
        """The URL of the store, in a form that another process can use; None if it has none."""
        if isinstance(self.given, str):
            return absolute(self.given, self.folder)
        resolved = self._resolved()
        found, origin = resolved.settings.store, resolved.origins["store"]
        if self.given is not None or found is None or origin.kind == "code":
            return None
        return absolute(found, origin.folder or Path.cwd())


class AppSettings:
    """The settings of one app, read when they are first needed."""

    def __init__(self, app: str, store: AppStore, code: Layer, retention: Retention | None) -> None:
        self._app = app
        self._store = store
        self._folder = store.folder  # the folder of rota.yaml, even if the process changes its folder
        self._code = code
        self._retention = retention
        self._resolved: Resolved | None = None

    @property
    def resolved(self) -> Resolved:
        """The settings with where each came from."""
        return self.read(resolve) if self._resolved is None else self._resolved

    def read(self, reader: Callable[[Path, Layer], Resolved]) -> Resolved:
        """Read them now, by this reader: lint has one that continues after mistakes."""
        found = self._resolved = reader(self._folder, self._code)
        if not isinstance(self._store.given, Store):
            warn_of_overruled(self._app, found)
        return found

    def add(self, layer: Layer) -> None:
        """Add the settings of a framework, as if they were passed to App(…); before anything is read."""
        self._code = {**layer, **self._code}
        self._resolved = None

    @property
    def retention(self) -> Retention:
        """How long finished records are kept."""
        return self._retention or self.resolved.settings.retention.as_retention()


class Wiring(forks.Forked):
    """Everything that one app owns. Settings are read and the store is opened when they are first needed."""

    def __init__(
        self, given: StoreArgument | None, *, name: str, version: str, code: Layer, retention: Retention | None
    ) -> None:
        self.name = check_name("app", name)
        self.version = version
        self.registry = Registry()
        self.codecs = Codecs()
        self.middleware: list[Middleware] = []  # the first is the outermost
        self.events = Events()
        log_events(self.events)
        self.store = AppStore(given, lambda: self.resolved)
        self.configuration = AppSettings(self.name, self.store, code, retention)
        self.open = self.store.open
        self.job_reader = StoreJobReader(self.open, self._decode_result)  # what handles of jobs use
        self.jobs = Jobs(self.open, self.job_reader)
        self.node: Node | None = None  # the services that run in this process
        self.has_code = True  # False: a command made it to read a store, and the code of the app is not loaded
        self.document_queues: dict[str, Any] = {}  # queues that code made beside this app, by name
        self.child_module: str | None = None  # the module that a child process imports before that of a task
        self.run_in_kit: RunCoroutine | None = None  # how a kit runs coroutines; None: on a loop in a thread
        self.makers: dict[str, Callable[[str], ScheduleSpec]] = {}  # schedules declared in code, given the app's zone
        self._aio: Aio | None = None
        self._is_dev = False
        forks.register(self)

    def after_fork(self) -> None:
        """In a child: the services and threads of the parent are not here. The next call makes what it needs."""
        forks.abandon(self.node)
        forks.abandon(self._aio)
        self.node = self._aio = None

    # What callers use.

    @cached_property
    def _live_tasks(self) -> LiveTasks:
        from rota.operations.live_tasks import LiveTasks  # noqa: PLC0415 - needed only to enqueue by name

        return LiveTasks(self.open)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(
            self.open,
            self.job_reader,
            self.new_id,
            self.settings.tz,
            self.redaction,
            self.middleware,
            bring_declared=lambda: bring(self.deploy, self),
        )

    @cached_property
    def tenants(self) -> Tenants:
        from rota.client.tenants import Tenants  # noqa: PLC0415 - an app without tenants does not pay for it

        return Tenants(self.open, self.new_id)

    @cached_property
    def sources(self) -> Sources:
        from rota.client.sources import Sources  # noqa: PLC0415 - likewise

        task_of = partial(self.registry.task_of, add=self.add_task)
        return Sources(self.open, self.jobs, self.new_id, task_of, self.makers)

    @cached_property
    def queues(self) -> Queues:
        from rota.client.queues import Queues  # noqa: PLC0415 - likewise

        return Queues(self.open)

    @cached_property
    def tokens(self) -> Tokens:
        from rota.client.tokens import Tokens  # noqa: PLC0415 - likewise

        return Tokens(self.open, self.new_id)

    @cached_property
    def alerts(self) -> Alerts:
        from rota.client.alerts import Alerts  # noqa: PLC0415 - likewise

        return Alerts(self)

    @cached_property
    def documents(self) -> Documents:
        from rota.documents.client import Documents  # noqa: PLC0415 - likewise

        return Documents(self)

    @property
    def has_documents(self) -> bool:
        """Whether rota.yaml or code declares queues of documents."""
        return bool(self.document_queues or self.resolved.declared.documents)

    def changes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Change]:
        """List audit records, newest first."""
        return list_changes(self.open(), self.redaction, since=since, until=until, limit=limit, cursor=cursor)

    def lock(self, name: str, *, ttl: str | timedelta = "60s", wait: str | timedelta | None = None) -> Lock:
        """A lock across processes."""
        return Lock(self.open, name, ttl, wait)

    @property
    def aio(self) -> Aio:
        if self._aio is None:
            from rota.client.aio import Aio  # noqa: PLC0415 - only coroutines pay for it

            self._aio = Aio(self)
        return self._aio

    # Enqueuing.

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Enqueue requests, a batch at a time; each batch is accepted whole or not at all."""
        if self.middleware:
            return create_through(self.middleware, requests, self._send)
        return self._send(requests)

    def _send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        transaction = one_transaction(requests)
        store = self.open() if transaction is None else self.store.open_within(transaction)
        if transaction is None:
            answers = send_in_turn(store, requests, _random)
        else:
            answers = send_within(store, transaction, requests, _random)
        reader = self.job_reader if transaction is None else InTransaction(self.job_reader)
        jobs: list[Job[Any]] = []
        for added in answers:
            if self.events.wants("job.enqueued"):
                self._emit_enqueued(requests[len(jobs) : len(jobs) + len(added)], added)
            jobs += [Job(reader, result.id, existed=result.existed) for result in added]
        return jobs

    def send_named(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job[Any]:
        """Enqueue a task by its name; this process may not have its code."""
        from rota.tasks.named import request_by_name  # noqa: PLC0415 - most processes have the code of their tasks

        request = request_by_name(self.registry, self.codecs, name, args, kwargs, self.redaction.extra)
        if self.registry.find(request.task) is None:
            self._live_tasks.check(request.task)
        return self.send([request])[0]

    async def asend(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Like `send`, from a coroutine: a thread of the app's own calls the store."""
        return await self.aio.send(requests)

    # What the app declares.

    def add_task(self, function: Any, options: TaskKeywords) -> Task[Any, Any]:
        """Register a function as a task."""
        if not callable(function) or isinstance(function, (Task, type)):
            raise BadOption(f"@app.task decorates a function, got {function!r}")
        name = options.get("name") or default_name(function)
        keywords: TaskKeywords = {**options}  # one set of options may declare several tasks
        keywords.setdefault("description", (function.__doc__ or "").strip().partition("\n")[0])
        checked = make_options(**keywords)
        kind = AsyncTask if inspect.iscoroutinefunction(function) else Task
        task: Task[Any, Any] = kind(function, name, checked, self, self.codecs, self.middleware)
        for middleware in self.middleware:
            check_wraps(middleware, task)
        self.registry.add(task)
        return task

    @property
    def declared(self) -> dict[str, ScheduleSpec]:
        """The schedules that the code declares, by id."""
        return {name: make(self.settings.tz) for name, make in self.makers.items()}

    @property
    def deploy(self) -> Deploy:
        """All declarations of this version of the app, in code and in rota.yaml."""
        return deploy_of(self.name, self.version, self.declared, self.resolved, self.registry)

    # The settings.

    @property
    def resolved(self) -> Resolved:
        """The settings with where each came from; read when first needed."""
        return self.configuration.resolved

    @property
    def settings(self) -> Settings:
        return self.resolved.settings

    @cached_property
    def redaction(self) -> Redaction:
        """Decides which arguments and results are shown as "[redacted]"."""
        return Redaction(self.settings.redact)

    @cached_property
    def checks_types(self) -> bool:
        """Whether arguments and results must be what plain hints such as `int` say."""
        said = self.settings.check_types
        return said == "always" or (said == "dev" and self._is_dev)

    def develop(self, *, is_dev: bool) -> None:
        """Check what costs time in production and helps while code is written: `rota dev` and the kit do."""
        self._is_dev = is_dev
        self.__dict__.pop("checks_types", None)

    def close(self) -> None:
        """Close the store, and end the threads of `aio`."""
        self.store.close()
        if "documents" in self.__dict__:
            self.documents.close()
        if self._aio is not None:
            self._aio.close()
            self._aio = None

    def new_id(self) -> str:
        return new_id(_random, utc_micros())

    def _emit_enqueued(self, requests: Sequence[Request], added: Sequence[Added]) -> None:
        now = self.store.now()
        for request, result in zip(requests, added, strict=True):
            self.events.emit("job.enqueued", now, job_id=result.id, task=request.task, existed=result.existed)

    def _decode_result(self, task_name: str, packed: bytes | None) -> Any:
        """A result by the task's return type, if the task is known here; else as plain JSON."""
        if packed is None:
            return None
        task = self.registry.find(task_name)
        return decode_value(packed, task.signature.returns if task else Any, self.codecs)


def _forked_without_hooks() -> StoreError:
    return StoreError(
        "this process was forked while the store was open, and Python's hooks for forks were not called, so that it "
        "would share the connections of its parent; start uWSGI with py-call-uwsgi-fork-hooks = true, or with "
        "lazy-apps = true"
    )
