"""An app on each server: by a URL, and by a client or pool that its author has already."""

from __future__ import annotations

from contextlib import closing

import pytest
from psycopg_pool import ConnectionPool
from pymongo import MongoClient
from redis import Redis

from every_store import SERVED, fresh_place
from rota import App, every
from rota.errors import BadStoreUrl

CLIENTS = {
    "redis": Redis.from_url,
    "postgres": lambda url: ConnectionPool(url, open=True, kwargs={"autocommit": True}),
    "mongo": MongoClient,
    "mongo-replica": MongoClient,
}


@pytest.fixture(params=SERVED)
def place(request, tmp_path):
    return fresh_place(request.param, tmp_path)


def try_it(app: App) -> None:
    """A task, a job, a schedule, a log and a result, from end to end."""

    @app.task(name="greet")
    def greet(name: str) -> str:
        print(f"hello {name}")  # noqa: T201 - kept as its log
        return name.upper()

    app.schedules.put("tick", greet.job("clock"), every("1h"))
    with app.running(concurrency=2):
        job = greet.enqueue("world")
        assert job.result("30s") == "WORLD"
        by_hand = app.schedules.run_now("tick")
        assert by_hand.result("30s") == "CLOCK"
    assert [line.text for line in app.jobs.logs(job.id)] == ["hello world"]
    assert [line.state for line in app.jobs.history(job.id)] == ["queued", "running", "succeeded"]


def test_an_app_on_a_url(place):
    with closing(App(place.url, namespace=place.namespace)) as app:
        try_it(app)


def test_an_app_on_a_client_of_its_authors_own_leaves_it_open(place):
    with closing(CLIENTS[place.kind](place.url)) as client:
        app = App(client, namespace=place.namespace)
        try_it(app)
        app.close()
        with closing(App(client, namespace=place.namespace)) as another:
            assert another.schedules.get("tick").task == "greet"


def test_anything_else_is_no_store():
    with pytest.raises(BadStoreUrl, match=r"a list is no store; give a URL \(sqlite:///file.db, redis://host"):
        App([]).open()
