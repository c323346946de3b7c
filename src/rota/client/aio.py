"""app.aio: the same verbs for coroutines, each run in a thread of the app's own. No second copy of anything.

    job = await app.aio.jobs.get(job_id)
    value = await app.aio.jobs.result(job_id, timeout="30s")

Waiting for a result holds no thread, so that any number of waits never keeps an enqueue waiting.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from rota.client.jobs import Jobs, result_timeout
from rota.client.schedules import Schedules
from rota.client.sources import Sources
from rota.client.tenants import Tenants
from rota.model.micros import timeout_of
from rota.tasks.job import Job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from rota.tasks.task import Request

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4
FIRST_LOOK, LONGEST_LOOK = 0.002, 0.25  # seconds between two looks at a job that is waited for


class _Shell:
    """Verbs of one of the app's parts, called in its threads."""

    def __init__(self, verbs: Any, threads: ThreadPoolExecutor) -> None:
        self._verbs = verbs
        self._threads = threads

    async def call(self, function: Callable[[], R]) -> R:
        """Call anything that blocks, in one of the app's threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


class _Awaited(Generic[P, R]):
    """A method of an app's part as a coroutine, with the same parameters."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method

    def __get__(self, shell: _Shell, owner: type | None = None) -> Callable[P, Awaitable[R]]:
        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
            return shell.call(partial(self._method, shell._verbs, *args, **kwargs))  # noqa: SLF001 - its own shell

        return call


class AsyncJobs(_Shell):
    """app.aio.jobs"""

    get = _Awaited(Jobs.get)
    list = _Awaited(Jobs.list)
    history = _Awaited(Jobs.history)
    why = _Awaited(Jobs.why)
    logs = _Awaited(Jobs.logs)
    cancel = _Awaited(Jobs.cancel)
    retry = _Awaited(Jobs.retry)
    delete = _Awaited(Jobs.delete)

    async def result(self, job_id: str, *, timeout: str | timedelta | float | None = None) -> Any:  # noqa: ASYNC109 - the API's word
        """What a job's task returned; waits for it without holding a thread."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout_of(timeout)
        pause = FIRST_LOOK
        while not (record := await self.call(partial(self._verbs.read, job_id))).state.is_final:
            if self._verbs.before_wait is not None:
                self._verbs.before_wait(record)
            if deadline is not None and loop.time() >= deadline:
                raise result_timeout(record, timeout)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_LOOK)
        return await self.call(Job[Any](self._verbs, job_id, record=record).result)


class AsyncSchedules(_Shell):
    """app.aio.schedules"""

    put = _Awaited(Schedules.put)
    put_many = _Awaited(Schedules.put_many)
    get = _Awaited(Schedules.get)
    list = _Awaited(Schedules.list)
    remove = _Awaited(Schedules.remove)
    pause = _Awaited(Schedules.pause)
    resume = _Awaited(Schedules.resume)
    enable = _Awaited(Schedules.enable)
    disable = _Awaited(Schedules.disable)
    run_now = _Awaited(Schedules.run_now)
    next_runs = _Awaited(Schedules.next_runs)
    occurrences = _Awaited(Schedules.occurrences)
    why = _Awaited(Schedules.why)
    changes = _Awaited(Schedules.changes)


class AsyncTenants(_Shell):
    """app.aio.tenants"""

    put = _Awaited(Tenants.put)
    get = _Awaited(Tenants.get)
    list = _Awaited(Tenants.list)
    pause = _Awaited(Tenants.pause)
    resume = _Awaited(Tenants.resume)
    remove = _Awaited(Tenants.remove)
    changes = _Awaited(Tenants.changes)


class AsyncSources(_Shell):
    """app.aio.sources"""

    list = _Awaited(Sources.list)
    get = _Awaited(Sources.get)
    run = _Awaited(Sources.run)
    task = _Awaited(Sources.task)
    tasks = _Awaited(Sources.tasks)
    logs = _Awaited(Sources.logs)
    cancel = _Awaited(Sources.cancel)


class Parts(Protocol):
    """What the app has that coroutines call."""

    @property
    def jobs(self) -> Jobs: ...

    @property
    def schedules(self) -> Schedules: ...

    @property
    def tenants(self) -> Tenants: ...

    @property
    def sources(self) -> Sources: ...

    def send(self, requests: Sequence[Request]) -> list[Job[Any]]: ...


class Aio(_Shell):
    """app.aio"""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, ThreadPoolExecutor(THREADS, thread_name_prefix="rota-aio"))
        self.jobs = AsyncJobs(parts.jobs, self._threads)
        self.schedules = AsyncSchedules(parts.schedules, self._threads)
        self.tenants = AsyncTenants(parts.tenants, self._threads)
        self.sources = AsyncSources(parts.sources, self._threads)

    async def send(self, requests: Sequence[Request]) -> list[Job[Any]]:
        """Have the store accept requests."""
        return await self.call(partial(self._verbs.send, requests))

    enqueue_many = send

    def close(self) -> None:
        self._threads.shutdown()
