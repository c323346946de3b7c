"""A list on the way to a field makes it name many values: such documents do not run, and keep no others from it."""

from __future__ import annotations

import json
import sqlite3
from copy import deepcopy

import pytest
from mongo_stage import MongoStage
from postgres_table_stage import fresh_table, owner, pool
from queue_stage import ago, wait_for

from rota.documents import DocumentQueue, Fields, MemorySource, MongoSource, PostgresSource, SqliteSource
from rota.errors import RotaError


class InMemory:
    prefix = ""

    def __init__(self, _folder, documents):
        self.documents = documents

    def source(self, fields):
        return MemorySource(self.documents, fields=fields)

    def read(self, wanted):
        return next(one for one in self.documents if one["_id"] == wanted)

    def change(self, wanted, **fields):
        self.read(wanted).update(fields)


class OnMongo:
    prefix = ""

    def __init__(self, _folder, documents):
        stage = MongoStage("mongo", "lists")
        stage.collection.drop()
        stage.insert(*documents)
        self.collection = stage.collection

    def source(self, fields):
        return MongoSource(self.collection, fields=fields)

    def read(self, wanted):
        return self.collection.find_one({"_id": wanted})

    def change(self, wanted, **fields):
        self.collection.update_one({"_id": wanted}, {"$set": fields})


class OnPostgres:
    prefix = "data."

    def __init__(self, _folder, documents):
        fresh_table("lists", "_id bigint PRIMARY KEY, data jsonb")
        for one in documents:
            owner().execute("INSERT INTO shop.lists VALUES (%s, %s)", (one["_id"], text(one)))

    def source(self, fields):
        return PostgresSource(pool(), "shop.lists", fields=fields, key="_id")

    def read(self, wanted):
        return owner().execute("SELECT data FROM shop.lists WHERE _id = %s", (wanted,)).fetchone()["data"]

    def change(self, wanted, **fields):
        owner().execute("UPDATE shop.lists SET data = data || %s::jsonb WHERE _id = %s", (text(fields), wanted))


class OnSqlite:
    prefix = "data."

    def __init__(self, folder, documents):
        self.path = folder / "shop.db"
        self.owner = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=60)
        self.owner.execute("CREATE TABLE lists (_id INTEGER PRIMARY KEY, data TEXT)")
        self.owner.executemany("INSERT INTO lists VALUES (?, ?)", [(one["_id"], text(one)) for one in documents])

    def source(self, fields):
        return SqliteSource(self.path, "lists", fields=fields, key="_id")

    def read(self, wanted):
        return json.loads(self.owner.execute("SELECT data FROM lists WHERE _id = ?", (wanted,)).fetchone()[0])

    def change(self, wanted, **fields):
        self.owner.execute("UPDATE lists SET data = json_patch(data, ?) WHERE _id = ?", (text(fields), wanted))


def text(document):
    return json.dumps(document, default=lambda value: value.isoformat(timespec="milliseconds"))


KINDS = pytest.mark.parametrize("kind", [InMemory, OnMongo, OnPostgres, OnSqlite], ids=lambda kind: kind.__name__)


def fields_of(kind, *, has_lock=True, **names):
    """Flat fields but for those that are named."""
    flat = {
        "sleep_until": "sleepUntil", "interval": "interval", "repeat_until": "repeatUntil", "auto_remove": "autoRemove",
        "locked_until": "lockedUntil", "locked_by": "lockedBy",
    }  # fmt: skip
    paths = {name: f"{kind.prefix}{path}" for name, path in (flat | names).items()}
    if has_lock:
        return Fields(**paths)
    return Fields.four(**{name: path for name, path in paths.items() if not name.startswith("locked")})


@KINDS
@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize(
    "names",
    [{"interval": "job.every"}, {"auto_remove": "job.gone"}, {"locked_until": "job.until", "locked_by": "job.by"}],
    ids=["interval", "removal", "lock"],
)
def test_a_document_with_a_list_on_the_way_does_not_run_and_stays_as_it_is(kind, names, concurrency, tmp_path):
    documents = [
        {"_id": 1, "sleepUntil": ago(9), "job": [{"every": "@hourly"}]},
        {"_id": 2, "sleepUntil": ago(8), "job": {}},
        {"_id": 3, "sleepUntil": ago(7)},
    ]
    stage = kind(tmp_path, documents)
    source, seen = stage.source(fields_of(kind, **names)), []
    before = json.dumps(stage.read(1), default=str, sort_keys=True)
    queue = DocumentQueue(source, lambda one: seen.append(one["_id"]), concurrency=concurrency)
    with queue:
        wait_for(lambda: queue.is_idle)
    assert seen == [2, 3]
    assert json.dumps(stage.read(1), default=str, sort_keys=True) == before
    assert "path-through-list" in [finding.kind for finding in source.check()]
    source.close()


@KINDS
@pytest.mark.parametrize("value", ["paid", 5, True], ids=repr)
def test_a_plain_value_on_the_way_to_the_lock_is_not_overwritten_and_the_document_does_not_run(kind, value, tmp_path):
    documents = [{"_id": 1, "sleepUntil": ago(9), "job": value}, {"_id": 2, "sleepUntil": ago(8), "job": None}]
    stage = kind(tmp_path, documents)
    source, seen = stage.source(fields_of(kind, locked_until="job.until", locked_by="job.by")), []
    queue = DocumentQueue(source, lambda one: seen.append(one["_id"]))
    with queue:
        wait_for(lambda: queue.is_idle)
    assert seen == [2]
    assert (stage.read(1)["job"], stage.read(1)["sleepUntil"] is None) == (value, False)
    assert "path-through-list" in [finding.kind for finding in source.check()]
    source.close()


@KINDS
@pytest.mark.parametrize("has_lock", [True, False], ids=["lock-fields", "four-fields"])
@pytest.mark.parametrize(
    "names", [{"sleep_until": "job.at", "interval": "job.every"}, {"interval": "job.every"}], ids=["all", "interval"]
)
def test_a_list_that_the_owner_writes_while_it_runs_stays_and_the_queue_goes_on(kind, names, has_lock, tmp_path):
    when = {"sleepUntil": ago(9), "job": {"at": ago(9), "every": "@yearly"}}
    stage = kind(tmp_path, [{"_id": id_, **deepcopy(when)} for id_ in (1, 2)])
    source, seen, heard = stage.source(fields_of(kind, has_lock=has_lock, **names)), [], []

    def work(one):
        seen.append(one["_id"])
        if one["_id"] == 1:
            stage.change(1, job=[{"every": "@hourly"}])

    queue = DocumentQueue(source, work)
    queue.on("document.locked_out", heard.append)
    with queue:
        wait_for(lambda: queue.is_idle)
        assert queue.processing == 0
    assert seen == [1, 2]
    assert stage.read(1)["job"] == [{"every": "@hourly"}]
    assert stage.read(1)["sleepUntil"] is not None
    assert [event.data["document_id"] for event in heard] == [1]
    source.close()


def test_a_path_with_a_number_is_refused():
    with pytest.raises(RotaError, match="list"):
        Fields(sleep_until="jobs.0.at")
