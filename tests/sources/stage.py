"""What the tests of collections share: an app with sources, ticks of its schedules, and a client of its HTTP API."""

from __future__ import annotations

import secrets
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient

from amounts import PATIENCE
from rota import Cancel, every
from rota.app import internals
from rota.model.micros import SECOND
from rota.model.schedules.firing import plan
from rota.store.contract import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota import App
    from rota.model.jobs.job import Job

TOKEN = "a-token-for-tests-only"  # noqa: S105 - opens nothing
EVER = "start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
HOURLY = {"name": "customers", "schedule": "@hourly"}
OFTEN = {"name": "orders", "schedule": every("1h"), "priority": 5}


def fresh() -> str:
    return secrets.token_hex(14)


class Stage:
    """An app with sources. What its task does is said by each test."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.calls: list[tuple[str, str]] = []
        self.act: Callable[[str, str], Any] = lambda _source, _collection: None

    def declare(self, collections: Any = (OFTEN, HOURLY), name: str = "shop", **options: Any) -> None:
        task = internals(self.app).registry.find("sync")
        if task is None:

            @self.app.task(name="sync")
            def task(source: str, collection: str) -> None:
                self.calls.append((source, collection))
                self.act(source, collection)

        self.app.sources.declare(name, list(collections), **options)(task)
        self.app.schedules.sync()

    def run(self, collection: str = "orders", source: str = "shop", **options: Any):
        return self.app.sources.run(source, collection, **options)

    def tick(self, *, skip: float = 3600.0) -> int:
        """Fire what is due so many seconds from now; answers the instant."""
        return tick(self.app, skip)

    def claim(self, number: int = 100, *, at: int | None = None) -> list[Job]:
        """Pull tasks as a worker does that never comes to their end."""
        return self.app.open().exchange(Exchange(holder="w", want=number), now=at).claimed

    def work(self, **options: Any) -> None:
        """Run what is ready until nothing is left."""
        with self.app.running(scheduler=False, **options) as node:
            assert node.worker.is_idle.wait(PATIENCE), "the worker never came to an end"

    def task(self, task_id: str):
        return self.app.sources.task(task_id)

    @cached_property
    def client(self) -> TestClient:
        return TestClient(self.app.asgi(token=TOKEN), headers={"X-Admin-Token": TOKEN})

    def get(self, path: str):
        return self.client.get(path, follow_redirects=False)

    def post(self, path: str):
        return self.client.post(path, follow_redirects=False)


def tick(app: App, skip: float = 3600.0) -> int:
    store = app.open()
    at = store.now() + int(skip * SECOND)
    due = store.due_schedules(100, now=at).schedules
    store.fire([plan(schedule, at, fresh) for schedule in due], now=at)
    return at


def live_jobs(app: App) -> list[Job]:
    from rota.store.contract import JobFilter  # noqa: PLC0415

    return [job for job in app.open().list_jobs(JobFilter(), limit=200).items if job.is_live]


def stop(reason: str) -> None:
    raise Cancel(reason)
