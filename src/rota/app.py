"""App: the one place that wires things together. It owns its tasks, schedules, store and events; nothing is global.

Nothing happens at import: the settings are read and the store is opened when they are first needed.
"""

from __future__ import annotations

import inspect
import os
import threading
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Never, ParamSpec, TypeVar, Unpack, cast, overload

from rota.client.jobs import Jobs
from rota.client.locks import Lock
from rota.client.schedules import Schedules
from rota.clock import utc_micros
from rota.config.loader import Resolved, from_code, resolve
from rota.deploy.deploy import bring, deploy_of, warn_of_overruled, warn_of_strangers
from rota.engine.events import Event, Events
from rota.errors import BadOption, DuplicateName
from rota.inspector.changes import Change, list_changes
from rota.keywords import known_keywords_of_verbs, refuse_unknown
from rota.model.codecs import Codec, Codecs
from rota.model.micros import span_of
from rota.model.names import check_name, check_queues, check_schedule_id, new_id
from rota.model.option_names import FOR_APP, FOR_START, FOR_VERBS
from rota.model.redaction import Redaction
from rota.model.sizes import bytes_of, check_concurrency, jobs_of
from rota.observe.loading import load_metrics
from rota.observe.logs import log_events
from rota.operations.enqueue import one_transaction, send_in_turn, send_within
from rota.operations.specs import make_spec
from rota.store.contract import Retention, Store
from rota.store.urls import absolute, default_store, store_from_client, store_from_url
from rota.tasks.arguments import decode_value
from rota.tasks.job import Job
from rota.tasks.task import AsyncTask, Overrides, Registry, Task, default_name, make_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
    from datetime import datetime, timedelta
    from typing import TypeAlias

    from psycopg_pool import ConnectionPool
    from pymongo import MongoClient
    from redis import Redis
    from redis.cluster import RedisCluster

    from rota.client.aio import Aio
    from rota.client.queues import Queues
    from rota.client.sources import Sources
    from rota.client.tenants import Tenants
    from rota.client.tokens import Tokens
    from rota.config.layers import Layer
    from rota.config.settings import Settings
    from rota.deploy.deploy import Deploy
    from rota.engine.node import Node
    from rota.model.schedule import ScheduleSpec
    from rota.observe.metrics import Metrics
    from rota.operations.collections import CollectionWords, SourceWords
    from rota.operations.specs import ScheduleKeywords
    from rota.store.contract import Added, Page
    from rota.tasks.task import Decorator, Request, TaskKeywords
    from rota.triggers import Trigger
    from rota.web.asgi import Web, WebOptions

    Place: TypeAlias = str | Store | Redis | RedisCluster | ConnectionPool[Any] | MongoClient[Any]

P = ParamSpec("P")
R = TypeVar("R")

_random = Random()  # noqa: S311 - ids guard nothing; its own, because a program may seed the shared one
os.register_at_fork(after_in_child=_random.seed)  # no two processes make the same ids


@known_keywords_of_verbs("app", {**FOR_VERBS, **FOR_START})
class App:
    """Tasks and schedules under one name, on one store.

    `App()` keeps everything in a SQLite file, .rota/rota.db; `App("redis://localhost")` names another place, and a
    client or a pool that you have already will do as well: `App(psycopg_pool.ConnectionPool(…))`.
    What is not said here is looked up when it is first needed: in ROTA_* variables, then in rota.yaml.
    """

    def __init__(
        self,
        store: Place | None = None,
        *,
        name: str = "app",
        version: str = "",
        namespace: str | None = None,
        tz: str | None = None,
        lease: str | None = None,
        retention: Retention | None = None,
        redact: Sequence[str] | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown("App()", unknown, App.__init__.__annotations__.keys() - {"unknown", "return"}, FOR_APP)
        self.name = check_name("app", name)
        self.version = version
        self.registry = Registry()
        self._codecs = Codecs()
        self.events = Events()
        log_events(self.events)
        self.folder = Path.cwd()  # where the default store goes; a loaded target sets its own
        self.jobs = Jobs(self.open, self._decode_result)
        self._here = self.folder  # where rota.yaml is looked for, however the process moves
        self._said = from_code(store=store, namespace=namespace, tz=tz, lease=lease, retention=retention, redact=redact)
        self._resolved: Resolved | None = None
        self._given = store
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._retention = retention
        self._declared: dict[str, Callable[[str], ScheduleSpec]] = {}  # given the app's timezone, for those without one
        self._node: Node | None = None
        self._aio: Aio | None = None

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules that the store has, and the verbs about them."""
        return Schedules(self.open, self.jobs, self._new_id, self.tz, self.redaction)

    @cached_property
    def tenants(self) -> Tenants:
        """Customers or projects with a timezone and defaults that schedules follow, and the verbs about them."""
        from rota.client.tenants import Tenants  # noqa: PLC0415 - who has none does not pay for it

        return Tenants(self.open, self._new_id)

    @cached_property
    def metrics(self) -> Metrics:
        """What a monitoring system reads of this process and its store; counted from the first asking on."""
        return load_metrics(self.open, self.events, lambda: self._node)

    @cached_property
    def queues(self) -> Queues:
        """The lines that jobs wait in, and the verbs about them."""
        from rota.client.queues import Queues  # noqa: PLC0415 - likewise

        return Queues(self.open)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens that let people and programs in over HTTP, and the verbs about them."""
        from rota.client.tokens import Tokens  # noqa: PLC0415 - likewise

        return Tokens(self.open, self._new_id)

    @cached_property
    def sources(self) -> Sources:
        """Collections that are kept in sync, and the verbs about them and their tasks."""
        from rota.client.sources import Sources  # noqa: PLC0415 - likewise

        return Sources(self.open, self.jobs, self._new_id)

    def asgi(self, **options: Unpack[WebOptions]) -> Web:
        """The HTTP API as an ASGI app, to be served or mounted in another: `Mount("/rota", app.asgi())`."""
        from rota.web.asgi import make_asgi  # noqa: PLC0415 - likewise

        return make_asgi(self, **options)

    def changes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Change]:
        """Who changed what, and when, of everything; newest first."""
        return list_changes(self.open(), self.redaction, since=since, until=until, limit=limit, cursor=cursor)

    # Declaring.

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(self, **options: Unpack[TaskKeywords]) -> Decorator: ...

    def task(self, function: Any = None, **options: Any) -> Any:
        """Register a function: `@app.task` or `@app.task(queue="mail", retries=5, timeout="60s")`."""
        keywords = cast("TaskKeywords", options)
        if function is not None:
            return self._add_task(function, keywords)
        return lambda decorated: self._add_task(decorated, keywords)

    def schedule(
        self,
        trigger: Trigger,
        *,
        id: str | None = None,  # noqa: A002 - the word that its users say
        **options: Unpack[ScheduleKeywords],
    ) -> Decorator:
        """Register a function and have it run by a trigger: `@app.schedule(cron("0 9 * * *"))`."""

        def declare(function: Any) -> Any:
            with self.registry.task_of(function, self._add_task) as task:
                schedule_id = check_schedule_id(id or task.__name__)
                if schedule_id in self._declared:
                    raise DuplicateName(f"a schedule with the id '{schedule_id}' is declared already; give one an id=")

                def make(tz: str) -> ScheduleSpec:
                    request = task.request((), {}, Overrides()) if tz else task.draft()
                    return make_spec(trigger, request, default_tz=tz, **options)

                make("")  # mistakes are told where they are made; the app's timezone is known when it is read
                self._declared[schedule_id] = make
            return task

        return cast("Decorator", declare)

    def source(
        self, name: str, collections: Sequence[str | CollectionWords], **options: Unpack[SourceWords]
    ) -> Decorator:
        """Register a function that is called with (source, collection) to keep each of these in sync."""
        from rota.operations.collections import declare_source  # noqa: PLC0415 - who has none does not pay for it

        def declare(function: Any) -> Any:
            with self.registry.task_of(function, self._add_task) as task:
                declare_source(self._declared, name, task, collections, options)
            return task

        return cast("Decorator", declare)

    def codec(self, kind: type[R], *, encode: Callable[[R], Any], decode: Callable[[Any], R]) -> None:
        """Register how values of a type of your own are kept: `app.codec(Money, encode=str, decode=Money.parse)`."""
        self._codecs.add(kind, Codec(encode, decode))

    def on(self, event: str, handler: Callable[[Event], None]) -> None:
        """Call a handler for every such event: `app.on("job.failed", tell_me)`, `app.on("job.*", count)`."""
        self.events.on(event, handler)

    # Enqueuing.

    def enqueue_many(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Send many requests in few round trips: `app.enqueue_many([greet.job("a"), greet.job("b")])`."""
        return self.send(requests)

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Have the store accept requests, a batch at a time; each batch is accepted whole or not at all."""
        store = self.open()
        transaction = one_transaction(requests)
        if transaction is None:
            answers = send_in_turn(store, requests, _random)
        else:
            answers = send_within(store, transaction, requests, _random)
        jobs: list[Job[Any]] = []
        for added in answers:
            if self.events.wants("job.enqueued"):
                self._tell_enqueued(requests[len(jobs) : len(jobs) + len(added)], added)
            jobs += [Job(self.jobs, result.id, existed=result.existed) for result in added]
        return jobs

    async def asend(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """As send, from a coroutine: the store is called in a thread of the app's own."""
        return await self.aio.send(requests)

    @property
    def aio(self) -> Aio:
        """The same verbs for coroutines: `await app.aio.jobs.get(job_id)`."""
        if self._aio is None:
            from rota.client.aio import Aio  # noqa: PLC0415 - only coroutines pay for it

            self._aio = Aio(self)
        return self._aio

    def lock(self, name: str, *, ttl: str | timedelta = "60s", wait: str | timedelta | None = None) -> Lock:
        """A lock across processes: `with app.lock("reindex", ttl="60s") as lock: ...`"""
        return Lock(self.open, name, ttl, wait)

    # Running.

    def start(
        self,
        *,
        worker: bool = True,
        scheduler: bool = True,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        drain: str | None = None,
        recycle_jobs: int | None = None,
        recycle_age: str | timedelta | None = None,
        recycle_memory: str | int | None = None,
    ) -> Node:
        """Start the services in threads of this process. What is not said here, the settings say."""
        from rota.engine.node import Node  # noqa: PLC0415 - who only enqueues needs no engine
        from rota.engine.services import NodeSettings  # noqa: PLC0415
        from rota.engine.upkeep.trimmer import trimmers  # noqa: PLC0415
        from rota.engine.worker.worker import WorkerSettings  # noqa: PLC0415

        if self._node is not None:
            raise BadOption("this app runs already; stop() it first")
        said = self.settings
        at_once = check_concurrency(said.worker.concurrency if concurrency is None else concurrency)
        taken = check_queues((said.worker.queues or ("default",)) if queues is None else queues)
        self.open()
        self.sync_schedules()
        warn_of_strangers(self.deploy)
        settings = NodeSettings(
            worker=worker,
            scheduler=scheduler,
            work=WorkerSettings(
                queues=taken,
                concurrency=at_once,
                lease_for=self.lease_for,
                redaction=self.redaction,
                recycle_jobs=said.worker.recycle_jobs if recycle_jobs is None else jobs_of(recycle_jobs),
                recycle_age=said.worker.recycle_age if recycle_age is None else span_of(recycle_age),
                recycle_memory=said.worker.recycle_memory if recycle_memory is None else bytes_of(recycle_memory),
            ),
            retention=self.retention,
            drain_for=(said.drain if drain is None else span_of(drain)) / 1e6,
            app=self.name,
            version=self.version,
        )
        self._node = Node(self.open(), self.registry, self.events, settings)
        self._node.services += trimmers(self.open(), self.events, self._node.clock)
        self._node.start()
        return self._node

    @property
    def node(self) -> Node | None:
        """The services that run in this process; None while none do."""
        return self._node

    def stop(self, *, drain: float | None = None) -> None:
        """Stop the services: wait for running jobs (25 s by default), hand back what is left."""
        node, self._node = self._node, None
        if node is not None:
            node.stop(drain_for=drain)

    @asynccontextmanager
    async def lifespan(self, _: object = None, **options: Any) -> AsyncIterator[None]:
        """The services, for the life of an ASGI app: `Starlette(lifespan=app.lifespan)`, `FastAPI(lifespan=…)`."""
        await self.aio.call(partial(self.start, **options))
        try:
            yield
        finally:
            await self.aio.call(self.stop)

    @contextmanager
    def running(self, **options: Any) -> Iterator[Node]:
        """The services, for the length of a block: `with app.running(): ...`"""
        node = self.start(**options)
        try:
            yield node
        finally:
            self.stop()

    def sync_schedules(self) -> int:
        """Bring the store to what the code and rota.yaml declare; what is unchanged is left alone.

        What an older version of this app declared and this one does not is retired.
        """
        return bring(self.deploy, self)

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
        """Read them now, by this reader: lint has one that goes on behind mistakes."""
        found = self._resolved = read(self._here, self._said)
        if not isinstance(self._given, Store):
            warn_of_overruled(self.name, found)
        return found

    @property
    def settings(self) -> Settings:
        """What counts: what was said in code, else ROTA_* variables, else rota.yaml, else the defaults."""
        return self.resolved.settings

    @property
    def namespace(self) -> str:
        """Which of several Rota systems in one store."""
        return self.settings.namespace

    @property
    def tz(self) -> str:
        """The timezone of schedules that name none."""
        return self.settings.tz

    @property
    def lease_for(self) -> int:
        """How long its workers own a job without a word (microseconds)."""
        return self.settings.lease

    @cached_property
    def redaction(self) -> Redaction:
        """Decides which arguments and results are shown as "[redacted]"."""
        return Redaction(self.settings.redact)

    @property
    def retention(self) -> Retention:
        """How long what has ended is kept."""
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

    def close(self) -> None:
        """Stop what runs and let go of the store."""
        self.stop()
        store, self._store = self._store, None
        if store is not None:
            store.close()
        if self._aio is not None:
            self._aio.close()
            self._aio = None

    @property
    def declared(self) -> dict[str, ScheduleSpec]:
        """The schedules that the code declares, by id."""
        return {name: make(self.tz) for name, make in self._declared.items()}

    @property
    def is_open(self) -> bool:
        """Whether its store is open."""
        return self._store is not None

    def use_store(self, store: Place | None) -> Place | None:
        """Use another store than the one that was given, before it is opened; answers the one given before."""
        before, self._given = self._given, store
        return before

    def find_store(self) -> Store:
        """The store that this app would open, unopened."""
        if isinstance(self._given, Store):
            return self._given
        if self._given is not None and not isinstance(self._given, str):
            return store_from_client(self._given, namespace=self.namespace)
        if (url := self.store_url) is not None:
            return store_from_url(url, namespace=self.namespace)
        return default_store(self.resolved.folder or self.folder, namespace=self.namespace)

    @property
    def store_url(self) -> str | None:
        """The URL that names its store, in a form that another process can use; None where none does."""
        if isinstance(self._given, str):
            return absolute(self._given, self.folder)
        found, origin = self.resolved.settings.store, self.resolved.origins["store"]
        if self._given is not None or found is None or origin.kind == "code":
            return None
        return absolute(found, origin.folder or Path.cwd())

    def _add_task(self, function: Any, options: TaskKeywords) -> Task[Any, Any]:
        if not callable(function) or isinstance(function, (Task, type)):
            raise BadOption(f"@app.task decorates a function, got {function!r}")
        name = options.get("name") or default_name(function)
        keywords: TaskKeywords = {**options}  # one set of options may declare several tasks
        keywords.setdefault("description", (function.__doc__ or "").strip().partition("\n")[0])
        checked = make_options(**keywords)
        kind = AsyncTask if inspect.iscoroutinefunction(function) else Task
        task: Task[Any, Any] = kind(function, name, checked, self, self._codecs)
        self.registry.add(task)
        return task

    def _tell_enqueued(self, requests: Sequence[Request], added: Sequence[Added]) -> None:
        now = self.open().now()
        for request, result in zip(requests, added, strict=True):
            self.events.emit("job.enqueued", now, job_id=result.id, task=request.task, existed=result.existed)

    def _decode_result(self, task_name: str, packed: bytes | None) -> Any:
        """A result as the task's return type says, where the task is known here; else as plain JSON."""
        if packed is None:
            return None
        task = self.registry.find(task_name)
        return decode_value(packed, task.signature.returns if task else Any, self._codecs)

    def _new_id(self) -> str:
        return new_id(_random, utc_micros())

    def __repr__(self) -> str:
        return f"<app {self.name}: {len(self.registry)} tasks, {len(self._declared)} schedules>"
