"""Queues of rota.yaml on MongoDB: opened by a URL, listed, run, and explained after a failure."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

import postgres_table_stage
import pytest
from bson import ObjectId
from redis_hash_stage import RedisStage

from documents.mongo_stage import DATABASE, MongoStage
from every_store import running_server
from rota import App
from rota.documents import PostgresSource
from rota.errors import DocumentNotFound
from rota.testing.document_suite.stage import wait_for

NOW = datetime.now(UTC)


@pytest.fixture
def app(tmp_path, monkeypatch):
    whole = urlsplit(running_server("mongo").url())._replace(path=f"/{DATABASE}").geturl()
    (tmp_path / "rota.yaml").write_text(
        f"documents:\n  bills:\n    source: {whole}\n    collection: bills\n    handler: fail\n"
        "    condition: {kind: open}\n    fields: {interval: job.every}\n"
    )
    monkeypatch.chdir(tmp_path)
    app = App("memory://")

    @app.task(name="fail")
    def fail(document):
        raise ValueError(f"no such bill: {document['_id']}")

    yield app
    app.close()


def test_a_queue_of_the_file_runs_on_mongodb_and_its_failures_are_explained(app):
    stage = MongoStage("mongo", "bills")
    stage.insert(
        {"_id": 1, "sleepUntil": NOW - timedelta(minutes=1), "kind": "open"},
        {"_id": 2, "sleepUntil": NOW + timedelta(days=1), "kind": "open", "job": {"every": "@daily"}},
        {"_id": 3, "sleepUntil": NOW - timedelta(minutes=1), "kind": "paid"},
    )
    known = app.documents.catalogue.get("bills")
    assert known.summary().states == {"waiting": 1, "due": 1, "running": 0, "retrying": 0, "done": 0}
    known.source.prepare()
    assert known.check() == []
    queue = app.documents.catalogue.queue("bills")
    queue.on("document.failed", lambda _: queue.stop("0s"))
    with queue:
        assert queue.wait("60s")
    why = known.why("1")
    assert (why.code, why.document.failures) == ("failed", 1)
    assert "It has failed 1 time, last at" in why.sentence
    assert "ValueError: no such bill: 1. Next try:" in why.sentence
    assert [one.id for one in known.documents(10, "retrying")] == [1]


def on_postgres():
    postgres_table_stage.fresh_table("bills", postgres_table_stage.COLUMNS.replace("_id text", "_id bigint"))
    return running_server("postgres").url(), "shop.bills", insert_rows


def insert_rows(*rows):
    for number, at, kind in rows:
        postgres_table_stage.owner().execute(
            'INSERT INTO shop.bills (_id, "sleepUntil", kind) VALUES (%s, %s, %s)', (number, at, kind)
        )


def on_redis():
    stage = RedisStage("bills")
    return (
        running_server("redis").url(),
        "bills",
        lambda *rows: [stage.write(number, {"sleepUntil": at, "kind": kind}) for number, at, kind in rows],
    )


@pytest.mark.parametrize("server", [on_postgres, on_redis])
def test_a_queue_of_the_file_runs_on_another_server_by_its_url(tmp_path, monkeypatch, server):
    url, collection, insert = server()
    past = NOW.replace(microsecond=0) - timedelta(minutes=1)
    insert((1, past, "open"), (2, NOW + timedelta(days=1), "open"), (3, past, "paid"))
    (tmp_path / "rota.yaml").write_text(
        f"documents:\n  bills: {{source: '{url}', collection: {collection}, key: _id, handler: pay, "
        "condition: {kind: open}}\n"
    )
    monkeypatch.chdir(tmp_path)
    app, seen = App("memory://"), []

    @app.task(name="pay")
    def pay(document):
        seen.append(document["_id"])

    with closing(app):
        app.documents.catalogue.get("bills").source.prepare()
        assert app.documents.check("bills") == []
        with app.running():
            wait_for(lambda: app.documents.get("bills", 1).state == "done")
        assert seen == [1]
        assert app.documents.why("bills", "2").code == "waiting"
        with pytest.raises(DocumentNotFound):  # it does not fit the condition
            app.documents.get("bills", 3)
        assert {state: number for state, number in app.documents.queues()[0].states.items() if number} == {
            "waiting": 1,
            "done": 1,
        }


def test_ids_of_mongodb_are_found_as_they_are_written(app):
    stage = MongoStage("mongo", "bills")
    ids = [ObjectId(), 2**40, 1.5, {"a": 1}, True, NOW.replace(microsecond=0, tzinfo=None)]
    stage.insert(*({"_id": one, "sleepUntil": NOW - timedelta(minutes=1), "kind": "open"} for one in ids))
    for one in ids:
        assert app.documents.get("bills", one).id.startswith(str(one))  # a time is shown with its zone
    for text in (str(ids[0]), str(2**40), "1.5", '{"a": 1}'):
        assert app.documents.get("bills", text).state == "due"


def test_ids_of_postgresql_are_found_whatever_the_column_is():
    for kind, wanted, wrong in (("bigint", 7, "x"), ("text", "7", "\0"), ("uuid", str(UUID(int=7)), "7")):
        postgres_table_stage.fresh_table("kinds", postgres_table_stage.COLUMNS.replace("_id text", f"_id {kind}"))
        postgres_table_stage.owner().execute('INSERT INTO shop.kinds (_id, "sleepUntil") VALUES (%s, now())', (wanted,))
        source = PostgresSource(postgres_table_stage.pool(), "shop.kinds", key="_id")
        assert source.find(str(wanted)).state == "due"
        assert source.find(wanted).state == "due"
        assert source.find(wrong) is None
