# ruff: noqa: S608 - the names are the test's own
"""Rows of a PostgreSQL table in the hands of their owner."""

from __future__ import annotations

import atexit
import json
from datetime import datetime
from functools import cache

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from every_store import running_server
from rota.documents import Fields, PostgresSource
from rota.testing.document_suite.stage import Stage

FIELDS = ["sleepUntil", "interval", "repeatUntil", "autoRemove", "lockedUntil", "lockedBy"]
COLUMNS = """_id text PRIMARY KEY, number bigint, "sleepUntil" timestamptz, interval text, "repeatUntil" timestamptz,
"autoRemove" boolean, "lockedUntil" timestamptz, "lockedBy" text, kind text, payload integer"""
IN_JSON = {
    "sleep_until": "data.job.sleepUntil", "interval": "data.job.interval", "repeat_until": "data.job.repeatUntil",
    "auto_remove": "data.job.autoRemove",
}  # fmt: skip


@cache
def owner():
    """One connection for all tests."""
    connection = psycopg.connect(running_server("postgres").url(), autocommit=True, row_factory=dict_row)
    connection.prepare_threshold = None  # each test has other columns
    atexit.register(connection.close)
    return connection


@cache
def pool():
    """One for all sources: each of their own would start three threads."""
    made = ConnectionPool(running_server("postgres").url(), min_size=1, max_size=8, open=True)
    atexit.register(made.close)
    return made


def fresh_table(name, columns):
    """An empty table in a schema of its own."""
    owner().execute("CREATE SCHEMA IF NOT EXISTS shop")
    owner().execute(f'DROP TABLE IF EXISTS shop."{name}"')
    owner().execute(f'CREATE TABLE shop."{name}" ({columns})')
    owner().execute("DROP TABLE IF EXISTS shop.rota_documents")


class JsonIdStage(Stage):
    """Ids are texts or numbers, as the suite wants: a column of type jsonb takes both."""

    table = "shop.orders"
    columns = COLUMNS.replace("_id text", "_id jsonb")

    def __init__(self):
        fresh_table("orders", self.columns)

    def insert(self, *documents):
        for one in documents:
            row = self.row(one)
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join("%s" for _ in row)
            owner().execute(f"INSERT INTO shop.orders ({names}) VALUES ({marks})", tuple(row.values()))

    def row(self, document):
        return document | {"_id": Jsonb(document["_id"])}

    def read(self, wanted):
        found = owner().execute("SELECT * FROM shop.orders WHERE _id = %s", (Jsonb(wanted),)).fetchone()
        return None if found is None else {name: value for name, value in found.items() if value is not None}

    def change(self, wanted, **fields):
        for name, value in fields.items():
            owner().execute(f'UPDATE shop.orders SET "{name}" = %s WHERE _id = %s', (value, Jsonb(wanted)))

    def delete(self, wanted):
        owner().execute("DELETE FROM shop.orders WHERE _id = %s", (Jsonb(wanted),))


class ColumnStage(JsonIdStage):
    """A column for each field."""

    can_omit_fields = False
    takes_any_value = False

    def make_source(self, *, has_lock, only_kind=None):
        fields = Fields() if has_lock else Fields.four()
        condition = None if only_kind is None else {"kind": only_kind}
        return PostgresSource(pool(), self.table, fields=fields, key="_id", condition=condition)


class InJsonStage(JsonIdStage):
    """One column with JSON, and the lock deeper in it than the schedule."""

    columns = "_id jsonb PRIMARY KEY, data jsonb, kind text, payload integer"

    def make_source(self, *, has_lock, only_kind=None):
        lock = {"locked_until": "data.job.lock.until", "locked_by": "data.job.lock.by"}
        fields = Fields(**IN_JSON, **lock) if has_lock else Fields.four(**IN_JSON)
        condition = None if only_kind is None else ("kind = %s", [only_kind])
        return PostgresSource(pool(), self.table, fields=fields, key="_id", condition=condition)

    def row(self, document):
        job = {name: value for name, value in document.items() if name in FIELDS}
        rest = {name: value for name, value in document.items() if name not in FIELDS}
        return super().row(rest | {"data": as_json({"job": job})})

    def read(self, wanted):
        found = super().read(wanted)
        if found is None:
            return None
        job = found.pop("data")["job"]
        return found | {name: timed(name, value) for name, value in job.items() if value not in (None, {})}

    def change(self, wanted, **fields):
        for name, value in fields.items():
            if name not in FIELDS:
                super().change(wanted, **{name: value})
                continue
            owner().execute(
                "UPDATE shop.orders SET data = jsonb_set(data, %s, %s) WHERE _id = %s",
                (["job", name], as_json(value), Jsonb(wanted)),
            )


def as_json(value):
    return Jsonb(value, dumps=lambda one: json.dumps(one, default=lambda at: at.isoformat(timespec="milliseconds")))


def timed(name, value):
    return datetime.fromisoformat(value) if name in {"sleepUntil", "repeatUntil", "lockedUntil"} else value
