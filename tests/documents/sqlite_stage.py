# ruff: noqa: S608, RUF012 - the names are the test's own
"""Rows of a SQLite table in the hands of their owner."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from rota.documents import Fields, SqliteSource
from rota.testing.document_suite.stage import Stage

NAMES = ["sleepUntil", "interval", "repeatUntil", "autoRemove", "lockedUntil", "lockedBy"]
IN_JSON = {
    "sleep_until": "data.job.sleepUntil", "interval": "data.job.interval", "repeat_until": "data.job.repeatUntil",
    "auto_remove": "data.job.autoRemove",
}  # fmt: skip


class ColumnStage(Stage):
    """A column for each field. They have no type, so that they take any value."""

    can_omit_fields = False
    columns = ["_id", *NAMES, "kind", "payload"]

    def __init__(self, path):
        self.path = path
        self.owner = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
        self.owner.execute("PRAGMA synchronous = OFF")
        self.owner.execute(f"CREATE TABLE orders ({', '.join(self.columns)}, PRIMARY KEY (_id))")

    def make_source(self, *, has_lock, only_kind=None):
        fields = Fields() if has_lock else Fields.four()
        condition = None if only_kind is None else {"kind": only_kind}
        return SqliteSource(self.path, "orders", fields=fields, key="_id", condition=condition)

    def insert(self, *documents):
        for one in documents:
            row = {name: plain(value) for name, value in one.items()}
            marks = ", ".join("?" for _ in row)
            self.owner.execute(f"INSERT INTO orders ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

    def read(self, wanted):
        found = self.owner.execute("SELECT * FROM orders WHERE _id = ?", (wanted,)).fetchone()
        if found is None:
            return None
        row = dict(zip(self.columns, found, strict=True))
        return {name: timed(name, value) for name, value in row.items() if value is not None}

    def change(self, wanted, **fields):
        for name, value in fields.items():
            self.owner.execute(f"UPDATE orders SET {name} = ? WHERE _id = ?", (plain(value), wanted))

    def delete(self, wanted):
        self.owner.execute("DELETE FROM orders WHERE _id = ?", (wanted,))


class JsonStage(ColumnStage):
    """One column with JSON, and the lock deeper in it than the schedule."""

    can_omit_fields = True
    columns = ["_id", "data", "kind", "payload"]

    def make_source(self, *, has_lock, only_kind=None):
        lock = {"locked_until": "data.job.lock.until", "locked_by": "data.job.lock.by"}
        fields = Fields(**IN_JSON, **lock) if has_lock else Fields.four(**IN_JSON)
        condition = None if only_kind is None else ("kind = ?", [only_kind])
        return SqliteSource(self.path, "orders", fields=fields, key="_id", condition=condition)

    def insert(self, *documents):
        for one in documents:
            job = {name: value for name, value in one.items() if name in NAMES}
            rest = {name: value for name, value in one.items() if name not in NAMES}
            super().insert({**rest, "data": json.dumps({"job": job}, default=plain)})

    def read(self, wanted):
        found = super().read(wanted)
        if found is None:
            return None
        job = json.loads(found.pop("data"))["job"]
        return found | {name: timed(name, value) for name, value in job.items() if value not in (None, {})}

    def change(self, wanted, **fields):
        for name, value in fields.items():
            if name not in NAMES:
                super().change(wanted, **{name: value})
                continue
            self.owner.execute(
                f"UPDATE orders SET data = json_set(data, '$.job.{name}', json(?)) WHERE _id = ?",
                (json.dumps(value, default=plain), wanted),
            )


def plain(value):
    """As an owner writes it: times as ISO texts."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return json.dumps(value, default=str) if isinstance(value, (list, dict)) else value


def timed(name, value):
    return datetime.fromisoformat(value) if name in {"sleepUntil", "repeatUntil", "lockedUntil"} else value
