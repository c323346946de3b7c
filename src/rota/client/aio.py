"""Runs the verbs of `app` for coroutines as `app.aio`, each in a thread of the app's own.

    job = await app.aio.jobs.get(job_id)
    value = await app.aio.jobs.result(job_id, timeout="30s")

Waiting for a result holds no thread, so that any number of waits never keeps an enqueue waiting.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from rota.client.awaited import Awaited, Shell
from rota.client.jobs import Jobs, result_timeout
from rota.client.locks import Lock
from rota.client.queues import Queues
from rota.client.schedules import Schedules
from rota.client.sources import Sources
from rota.client.tenants import Tenants
from rota.client.tokens import Tokens
from rota.model.micros import timeout_of
from rota.operations.enqueue import in_transaction, one_transaction
from rota.store.shared.caller_connection import is_async, use_on_loop
from rota.tasks.job import Job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from rota.client.aio_alerts import AsyncAlerts
    from rota.client.aio_documents import AsyncDocuments
    from rota.client.jobs import StoreJobReader
    from rota.inspector.changes import Change
    from rota.store.contract import Page
    from rota.tasks.task import Request

THREADS = 4
FIRST_LOOK, LONGEST_LOOK = 0.002, 0.25  # seconds between two reads of a job that is waited for


class AsyncJobs(Shell):
    """app.aio.jobs"""

    def __init__(self, jobs: Jobs, reader: StoreJobReader, threads: ThreadPoolExecutor) -> None:
        super().__init__(jobs, threads)
        self._reader = reader

    get = Awaited(Jobs.get)
    list = Awaited(Jobs.list)
    history = Awaited(Jobs.history)
    why = Awaited(Jobs.why)
    logs = Awaited(Jobs.logs)
    cancel = Awaited(Jobs.cancel)
    retry = Awaited(Jobs.retry)
    delete = Awaited(Jobs.delete)

    async def result(self, job_id: str, *, timeout: str | timedelta | float | None = None) -> Any:  # noqa: ASYNC109 - the API's word
        """The result of a job's task. Waits for it without holding a thread."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout_of(timeout)
        pause = FIRST_LOOK
        while not (record := await self.call(partial(self._reader.read, job_id))).state.is_final:
            if self._reader.before_wait is not None:
                self._reader.before_wait(record)
            if deadline is not None and loop.time() >= deadline:
                raise result_timeout(record, timeout)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_LOOK)
        return await self.call(Job[Any](self._reader, job_id, record=record).result)


class AsyncSchedules(Shell):
    """app.aio.schedules"""

    sync = Awaited(Schedules.sync)
    put = Awaited(Schedules.put)
    put_many = Awaited(Schedules.put_many)
    preview = Awaited(Schedules.preview)
    get = Awaited(Schedules.get)
    list = Awaited(Schedules.list)
    remove = Awaited(Schedules.remove)
    pause = Awaited(Schedules.pause)
    resume = Awaited(Schedules.resume)
    enable = Awaited(Schedules.enable)
    disable = Awaited(Schedules.disable)
    run_now = Awaited(Schedules.run_now)
    next_runs = Awaited(Schedules.next_runs)
    occurrences = Awaited(Schedules.occurrences)
    why = Awaited(Schedules.why)
    changes = Awaited(Schedules.changes)


class AsyncTenants(Shell):
    """app.aio.tenants"""

    put = Awaited(Tenants.put)
    get = Awaited(Tenants.get)
    list = Awaited(Tenants.list)
    pause = Awaited(Tenants.pause)
    resume = Awaited(Tenants.resume)
    remove = Awaited(Tenants.remove)
    changes = Awaited(Tenants.changes)


class AsyncSources(Shell):
    """app.aio.sources"""

    list = Awaited(Sources.list)
    get = Awaited(Sources.get)
    run = Awaited(Sources.run)
    task = Awaited(Sources.task)
    tasks = Awaited(Sources.tasks)
    logs = Awaited(Sources.logs)
    cancel = Awaited(Sources.cancel)


class AsyncQueues(Shell):
    """app.aio.queues"""

    list = Awaited(Queues.list)
    get = Awaited(Queues.get)
    pause = Awaited(Queues.pause)
    resume = Awaited(Queues.resume)


class AsyncTokens(Shell):
    """app.aio.tokens"""

    create = Awaited(Tokens.create)
    list = Awaited(Tokens.list)
    get = Awaited(Tokens.get)
    revoke = Awaited(Tokens.revoke)
    check = Awaited(Tokens.check)


class AsyncLock(Shell):
    """The result of app.aio.lock(): `async with app.aio.lock("reindex", ttl="60s") as lock: ...`"""

    extend = Awaited(Lock.extend)
    release = Awaited(Lock.release)

    @property
    def name(self) -> str:
        return str(self._verbs.name)

    @property
    def fence(self) -> int:
        """Rises with every owner."""
        return int(self._verbs.fence)

    async def acquire(self) -> bool:
        """Acquire the lock, waiting up to the given time, without holding a thread; False if another owner has it."""
        pauses = self._verbs.pauses()
        while not await self.call(self._verbs.try_acquire):
            pause = next(pauses, None)
            if pause is None:
                return False
            await asyncio.sleep(pause)
        return True

    async def __aenter__(self) -> Self:
        if not await self.acquire():
            raise self._verbs.held_elsewhere()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()


class Parts(Protocol):
    """The parts of the app that coroutines call."""

    @property
    def jobs(self) -> Jobs: ...

    @property
    def job_reader(self) -> StoreJobReader: ...

    @property
    def schedules(self) -> Schedules: ...

    @property
    def tenants(self) -> Tenants: ...

    @property
    def sources(self) -> Sources: ...

    @property
    def queues(self) -> Queues: ...

    @property
    def tokens(self) -> Tokens: ...

    def changes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Change]: ...

    def lock(self, name: str, *, ttl: str | timedelta = "60s", wait: str | timedelta | None = None) -> Lock: ...

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]: ...

    def send_named(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job[Any]: ...


class Aio(Shell):
    """app.aio"""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, ThreadPoolExecutor(THREADS, thread_name_prefix="rota-aio"))
        self.jobs = AsyncJobs(parts.jobs, parts.job_reader, self._threads)
        self.schedules = AsyncSchedules(parts.schedules, self._threads)
        self.tenants = AsyncTenants(parts.tenants, self._threads)
        self.sources = AsyncSources(parts.sources, self._threads)
        self.queues = AsyncQueues(parts.queues, self._threads)
        self.tokens = AsyncTokens(parts.tokens, self._threads)

    @cached_property
    def documents(self) -> AsyncDocuments:
        from rota.client.aio_documents import AsyncDocuments  # noqa: PLC0415 - not needed without documents

        return AsyncDocuments(self._verbs.documents, self._threads)

    @cached_property
    def alerts(self) -> AsyncAlerts:
        from rota.client.aio_alerts import AsyncAlerts  # noqa: PLC0415 - likewise

        return AsyncAlerts(self._verbs.alerts, self._threads)

    changes = Awaited(Parts.changes)

    def lock(self, name: str, *, ttl: str | timedelta = "60s", wait: str | timedelta | None = None) -> AsyncLock:
        """A lock across processes: `async with app.aio.lock("reindex", ttl="60s") as lock: ...`"""
        return AsyncLock(self._verbs.lock(name, ttl=ttl, wait=wait), self._threads)

    async def send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Have the store accept requests. A transaction of a coroutine is used on its own loop; any other
        transaction is used in the thread that called this, to which it belongs."""
        transaction = one_transaction(requests)
        if transaction is None:
            return await self.call(partial(self._verbs.send, requests))
        if not is_async(transaction):
            sent: list[Job[Any]] = self._verbs.send(requests)
            return sent
        return await use_on_loop(
            transaction, lambda bound: self.call(partial(self._verbs.send, in_transaction(requests, bound)))
        )

    enqueue_many = send

    async def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Enqueue a task by its name: `await app.aio.enqueue("jobs.greet", "world")`."""
        return await self.call(partial(self._verbs.send_named, name, args, kwargs))

    def close(self) -> None:
        self._threads.shutdown()
