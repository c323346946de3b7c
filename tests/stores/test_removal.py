"""What a store says about its removal: it names what Rota made, and leaves the tables and keys of its users alone."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from shlex import split

import psycopg
import pymongo
import pytest
import redis

from every_store import SERVED, fresh_place, running_server
from rota.store.sqlite import SqliteStore
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.steps import add_job


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


def made(place):
    """A place on a server with a job in it. It is not lent: another test need not find it as it was."""
    with opened(place.make) as store:
        add_job(store)
    return place


def server_place(kind, folder):
    if kind not in SERVED:
        pytest.skip(f"{kind} is not among the chosen stores")
    return made(fresh_place(kind, folder, running_server(kind)))


def sqlite_of(path, *namespaces):
    for namespace in namespaces:
        with opened(lambda name=namespace: SqliteStore(path, namespace=name)) as store:
            add_job(store)
    return SqliteStore(path, namespace=namespaces[0])


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_sqlite_file_with_nothing_else_may_be_deleted_whole(path):
    removal = sqlite_of(path, "rota", "prod").removal()
    assert removal.whole == f"delete {path}, and shop.db-wal, shop.db-shm and shop.db-notify beside it"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE orders (id INTEGER PRIMARY KEY)",
        "CREATE TABLE rota_orders (id INTEGER PRIMARY KEY)",
        "CREATE VIEW late AS SELECT id FROM rota_job",
        "CREATE TRIGGER noted AFTER DELETE ON rota_job BEGIN SELECT 1; END",
    ],
)
def test_a_sqlite_file_with_anything_of_its_user_is_not_deleted_whole(path, statement):
    store = sqlite_of(path, "rota")
    change(path, statement)
    assert store.removal().whole == ""


def test_dropping_the_tables_that_are_named_leaves_the_users_tables(path):
    store = sqlite_of(path, "rota", "prod")
    change(path, "CREATE TABLE rota_orders (id INTEGER PRIMARY KEY)")
    tables = re.fullmatch(rf"drop the tables (.*) of {path}", store.removal().words)[1].split(", ")
    assert "rota_orders" not in tables
    change(path, *(f"DROP TABLE {table}" for table in tables))
    with closing(sqlite3.connect(path)) as connection:
        left = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rota%'")}
    assert left == {"rota_orders"}
    assert store.namespaces() == ["prod"]


def test_a_postgres_schema_with_nothing_else_is_dropped(tmp_path):
    place = server_place("postgres", tmp_path)
    store = place.make()
    statement = f'DROP SCHEMA "{place.namespace}" CASCADE'
    assert f"run {statement}, after a look at what else" in store.removal().words
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(statement)
    assert place.namespace not in store.namespaces()


@pytest.mark.parametrize("kind", ["mongo", "mongo-replica"])
def test_dropping_the_collections_that_are_named_leaves_the_users_collections(tmp_path, kind):
    place = server_place(kind, tmp_path)
    store = place.make()
    with pymongo.MongoClient(place.url) as client:
        database = client.get_default_database()
        database[f"{place.namespace}_orders"].insert_one({"id": 1})
        found = re.fullmatch(r"drop the collections (.*), and not the database", store.removal().words)
        for name in found[1].split(", "):
            database.drop_collection(name)
        left = database.list_collection_names(filter={"name": {"$regex": f"^{place.namespace}_"}})
    assert left == [f"{place.namespace}_orders"]
    assert place.namespace not in store.namespaces()


def test_deleting_the_keys_with_the_prefix_leaves_the_users_keys(tmp_path):
    place = server_place("redis", tmp_path)
    store = place.make()
    command = re.search(r"\((redis-cli .*) lists them\)", store.removal().words)[1]
    with redis.Redis.from_url(place.url) as client:
        client.set(f"{place.namespace}:orders", "1")
        client.delete(*client.scan_iter(match=split(command)[-1]))
        assert client.get(f"{place.namespace}:orders") == b"1"
        assert list(client.scan_iter(match=f"*{place.namespace}*")) == [f"{place.namespace}:orders".encode()]
    assert place.namespace not in store.namespaces()
