"""Defines App, which owns its tasks, schedules, store and events; nothing is global.

Nothing happens at import: the settings are read and the store is opened when they are first needed.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Never, ParamSpec, TypeVar, Unpack, cast, overload

from rota.config.loader import from_code
from rota.config.running import run_settings
from rota.deploy.deploy import warn_of_unknown_tasks
from rota.errors import BadOption, DuplicateName
from rota.keywords import known_keywords_of_verbs, refuse_unknown
from rota.model.jobs.codecs import Codec
from rota.model.names import check_schedule_id
from rota.model.option_names import FOR_APP, FOR_START, FOR_VERBS
from rota.observe.loading import load_metrics
from rota.operations.specs import make_spec
from rota.tasks.middleware import check_middleware
from rota.tasks.task import AsyncTask, Overrides, Task, request_during_import
from rota.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime, timedelta

    from rota.client.aio import Aio
    from rota.client.alerts import Alerts
    from rota.client.jobs import Jobs
    from rota.client.locks import Lock
    from rota.client.queues import Queues
    from rota.client.schedules import Schedules
    from rota.client.sources import Sources
    from rota.client.tenants import Tenants
    from rota.client.tokens import Tokens
    from rota.config.running import RunSettings
    from rota.config.settings import Settings
    from rota.documents.client import Documents
    from rota.engine.events import Event
    from rota.engine.node import Node
    from rota.engine.service import Service
    from rota.inspector.changes import Change
    from rota.model.schedules.schedule import ScheduleSpec
    from rota.observe.metrics import Metrics
    from rota.operations.specs import ScheduleKeywords
    from rota.store.contract import Page, Retention, Store
    from rota.tasks.job import Job
    from rota.tasks.middleware import Middleware
    from rota.tasks.task import Decorator, Registry, Request, TaskKeywords
    from rota.triggers import Trigger
    from rota.web.asgi import Web, WebOptions
    from rota.wiring import StoreArgument

P = ParamSpec("P")
R = TypeVar("R")


@known_keywords_of_verbs("app", {**FOR_VERBS, **FOR_START})
class App:
    """Tasks and schedules under one name, on one store.

    `App()` keeps everything in a SQLite file, .rota/rota.db; `App("redis://localhost")` uses another store, and a
    client or a pool that you already have works, too: `App(psycopg_pool.ConnectionPool(…))`. Arguments that are left
    out are read when they are first needed: from ROTA_* variables, then from rota.yaml.
    """

    def __init__(
        self,
        store: StoreArgument | None = None,
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
        code = from_code(store=store, namespace=namespace, tz=tz, lease=lease, retention=retention, redact=redact)
        self._wiring = Wiring(store, name=name, version=version, code=code, retention=retention)
        self.name = self._wiring.name  # the schedules that the code declares belong to it
        self.version = version  # an older one never overwrites the schedules of a newer one
        self.jobs: Jobs = self._wiring.jobs  # the jobs that the store has, and the verbs about them

    @property
    def schedules(self) -> Schedules:
        """The schedules that the store has, and the verbs about them."""
        return self._wiring.schedules

    @property
    def tenants(self) -> Tenants:
        """Customers or projects with a timezone and defaults that schedules follow, and the verbs about them."""
        return self._wiring.tenants

    @property
    def sources(self) -> Sources:
        """Collections that are kept in sync, and the verbs about them and their tasks."""
        return self._wiring.sources

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics of this process and its store; the process counts from the first access on."""
        wiring = self._wiring
        return load_metrics(self.open, wiring.events, lambda: wiring.node)

    @property
    def queues(self) -> Queues:
        """The queues that jobs wait in, and the verbs about them."""
        return self._wiring.queues

    @property
    def tokens(self) -> Tokens:
        """The tokens of the HTTP API, and the verbs about them."""
        return self._wiring.tokens

    @property
    def alerts(self) -> Alerts:
        """Alert rules, channels and heartbeat URLs; the alerts that were raised, and the verbs about them."""
        return self._wiring.alerts

    @property
    def documents(self) -> Documents:
        """The queues whose jobs are documents of a collection or table, and the verbs about them."""
        return self._wiring.documents

    def asgi(self, **options: Unpack[WebOptions]) -> Web:
        """The HTTP API as an ASGI app, to be served or mounted in another: `Mount("/rota", app.asgi())`."""
        from rota.web.asgi import make_asgi  # noqa: PLC0415 - needed only to serve it

        return make_asgi(self, **options)

    def changes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Change]:
        """List audit records, newest first."""
        return self._wiring.changes(since=since, until=until, limit=limit, cursor=cursor)

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
            return self._wiring.add_task(function, keywords)
        return lambda decorated: self._wiring.add_task(decorated, keywords)

    def schedule(
        self,
        trigger: Trigger,
        *,
        id: str | None = None,  # noqa: A002 - the word that its users say
        **options: Unpack[ScheduleKeywords],
    ) -> Decorator:
        """Register a function and have it run by a trigger: `@app.schedule(cron("0 9 * * *"))`."""

        def declare(function: Any) -> Any:
            with self._wiring.registry.task_of(function, self._wiring.add_task) as task:
                schedule_id = check_schedule_id(id or task.__name__)
                if schedule_id in self._wiring.makers:
                    raise DuplicateName(f"a schedule with the id '{schedule_id}' is declared already; give one an id=")

                def make(tz: str) -> ScheduleSpec:
                    request = task.request((), {}, Overrides()) if tz else request_during_import(task)
                    return make_spec(trigger, request, default_tz=tz, **options)

                make("")  # errors are raised at the declaration; the app's timezone is known when it is read
                self._wiring.makers[schedule_id] = make
            return task

        return cast("Decorator", declare)

    def codec(self, kind: type[R], *, encode: Callable[[R], Any], decode: Callable[[Any], R]) -> None:
        """Register how values of a type of your own are stored: `app.codec(Money, encode=str, decode=Money.parse)`."""
        self._wiring.codecs.add(kind, Codec(encode, decode))

    def use(self, middleware: Middleware) -> None:
        """Wrap a middleware around the creation of this app's jobs and around each attempt.

        The first one is the outermost. Call it in the module that creates the app, so that every process has it.
        """
        wiring = self._wiring
        wiring.middleware.append(check_middleware(middleware, wiring.middleware, [*wiring.registry]))

    def on(self, event: str, handler: Callable[[Event], None]) -> None:
        """Call a handler for every such event: `app.on("job.failed", tell_me)`, `app.on("job.*", count)`."""
        self._wiring.events.on(event, handler)

    # Enqueuing.

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Enqueue a task by its name, from a service without its code: `app.enqueue("jobs.greet", "world")`.

        If this app has the task, its signature and its options apply. Otherwise the job goes into the queue `default`,
        and the worker that runs it checks the arguments. If workers are alive and none has the task, it is refused. To
        choose the queue or other options, declare a stub: `@app.task(name="jobs.greet", queue="mail")`.
        """
        return self._wiring.send_named(name, args, kwargs)

    def enqueue_many(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Send many requests in few round trips: `app.enqueue_many([greet.job("a"), greet.job("b")])`.

        The store accepts them in batches of 1,000, each whole or not at all. If one fails, the batches before it stand.
        With `tx=`, all are in your transaction, or none.
        """
        return self._wiring.send(requests)

    @property
    def aio(self) -> Aio:
        """The same verbs for coroutines: `await app.aio.jobs.get(job_id)`."""
        return self._wiring.aio

    def lock(self, name: str, *, ttl: str | timedelta = "60s", wait: str | timedelta | None = None) -> Lock:
        """A lock across processes: `with app.lock("reindex", ttl="60s") as lock: ...`"""
        return self._wiring.lock(name, ttl=ttl, wait=wait)

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
        documents: bool | None = None,
    ) -> Node:
        """Start the services in threads of this process. The settings apply to arguments that are left out.

        A node with a worker and a scheduler also runs the queues of documents; `documents` changes that.
        """
        wiring = self._wiring
        if wiring.node is not None:
            raise BadOption("this app runs already; stop() it first")
        said = run_settings(
            self.settings,
            queues=queues,
            concurrency=concurrency,
            drain=drain,
            recycle_jobs=recycle_jobs,
            recycle_age=recycle_age,
            recycle_memory=recycle_memory,
        )
        self.open()
        self.schedules.sync()
        warn_of_unknown_tasks(wiring.deploy)
        node = wiring.node = self._make_node(said, worker=worker, scheduler=scheduler)
        node.start()
        if (worker and scheduler) if documents is None else documents:
            self._start_documents(node)
        return node

    def _make_node(self, said: RunSettings, *, worker: bool, scheduler: bool) -> Node:
        from rota.engine.node import Node  # noqa: PLC0415 - enqueuing needs no engine
        from rota.engine.services import NodeSettings  # noqa: PLC0415
        from rota.engine.upkeep.trimmer import trimmers  # noqa: PLC0415
        from rota.engine.worker.worker import WorkerSettings  # noqa: PLC0415

        wiring = self._wiring
        settings = NodeSettings(
            worker=worker,
            scheduler=scheduler,
            work=WorkerSettings(
                queues=said.queues,
                concurrency=said.concurrency,
                lease_for=wiring.settings.lease,
                redaction=wiring.redaction,
                recycle_jobs=said.recycle_jobs,
                recycle_age=said.recycle_age,
                recycle_memory=said.recycle_memory,
            ),
            retention=wiring.configuration.retention,
            drain_for=said.drain_for,
            app=self.name,
            version=self.version,
        )
        node = Node(self.open(), wiring.registry, wiring.events, settings)
        for trimmer in trimmers(self.open(), wiring.events, node.clock):
            node.add(trimmer)
        self._add_alerts(node)
        return node

    def _add_alerts(self, node: Node) -> None:
        found = self._wiring.resolved
        is_said = found.declared.alerts or found.declared.heartbeats or found.settings.alerting.node_heartbeat
        if is_said or "alerts" in self._wiring.__dict__:
            from rota.alerts.services import add_alert_services  # noqa: PLC0415 - not needed without alerts

            alerts = self._wiring.alerts
            add_alert_services(alerts.plan, alerts.declared, node, self.open(), app=self.name)
            if alerts.plan.rules:
                return
        from rota.alerts.starter import AlertStarter  # noqa: PLC0415 - only nodes need it

        make_watch = partial(self._watch_alerts, node)
        node.add(AlertStarter(self.open(), node.events, node.clock, make_watch, app=self.name))

    def _watch_alerts(self, node: Node) -> Service:
        from rota.alerts.services import watch_for_stored_rules  # noqa: PLC0415 - not needed without rules

        return watch_for_stored_rules(self.alerts.plan, node, self.open(), app=self.name)

    def _start_documents(self, node: Node) -> None:
        if not self._wiring.has_documents:
            return
        from rota.documents.service import QueueGroup  # noqa: PLC0415 - not needed without documents

        group = QueueGroup()
        node.companions.append(group)
        group.start_declared(self.documents.catalogue)

    def stop(self, *, drain: float | None = None) -> None:
        """Stop the services: wait for running jobs (25 s by default), then return the others to their queues."""
        node, self._wiring.node = self._wiring.node, None
        if node is not None:
            node.stop(drain_for=drain)

    def running(self, _: object = None, **options: Any) -> Running:
        """The services, for the length of a block: `with app.running():`, or `async with`; options are those of start.

        For the life of an ASGI app: `Starlette(lifespan=app.running)`, `FastAPI(lifespan=app.running)`.
        """
        return Running(self, options)

    @property
    def settings(self) -> Settings:
        """The settings that apply: those of the code, else ROTA_* variables, else rota.yaml, else the defaults."""
        return self._wiring.settings

    # The store.

    def open(self) -> Store:
        """The store, opened when first needed."""
        return self._wiring.open()

    def close(self) -> None:
        """Stop the services and close the store."""
        self.stop()
        self._wiring.close()

    @property
    def __rota_tasks__(self) -> Registry:
        """Its tasks, for a child process that has only imported the module which made the app."""
        return self._wiring.registry

    def __repr__(self) -> str:
        return f"<app {self.name}: {len(self._wiring.registry)} tasks, {len(self._wiring.makers)} schedules>"


class Running:
    """The services of an app, for the length of a `with` or an `async with` block."""

    def __init__(self, app: App, options: dict[str, Any]) -> None:
        self._app = app
        self._options = options

    def __enter__(self) -> Node:
        return self._app.start(**self._options)

    def __exit__(self, *_: object) -> None:
        self._app.stop()

    async def __aenter__(self) -> None:
        await self._app.aio.call(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await self._app.aio.call(self._app.stop)


def internals(app: App) -> Wiring:
    """The parts of an app, for modules of Rota that users do not call. It may change in any release."""
    return app._wiring  # noqa: SLF001 - the only access to it
