"""Hashes of a Redis server in the hands of their owner."""

from __future__ import annotations

import atexit
from datetime import datetime
from functools import cache

import redis

from every_store import running_server
from rota.documents import Fields, RedisSource
from rota.model.micros import MILLISECOND, datetime_of, micros_of
from rota.testing.document_suite.stage import Stage

TIMES = {"sleepUntil", "repeatUntil", "lockedUntil"}


@cache
def client():
    """One for all tests, and with texts, as many owners have it."""
    made = redis.Redis.from_url(running_server("redis").url(), decode_responses=True)
    atexit.register(made.close)
    return made


class RedisStage(Stage):
    """Documents that the owner writes by the two commands of the guide, and not by Rota."""

    takes_any_value = False  # a field is a text, and a number is a time

    def __init__(self, prefix="orders"):
        self.root = f"{{{prefix}}}:"
        for key in client().scan_iter(f"{self.root}*"):
            client().delete(key)

    def make_source(self, *, has_lock, only_kind=None):
        return RedisSource(
            client(),
            "orders",
            fields=Fields() if has_lock else Fields.four(),
            key="_id",
            condition=None if only_kind is None else {"kind": only_kind},
            to_document=lambda found: {**found, "payload": int(found["payload"])},
        )

    def insert(self, *documents):
        for one in documents:
            self.write(one["_id"], {name: value for name, value in one.items() if name != "_id"})

    def change(self, wanted, **fields):
        self.write(wanted, fields)

    def write(self, wanted, fields):
        client().hset(f"{self.root}doc:{wanted}", mapping={name: plain(value) for name, value in fields.items()})
        if fields.get("sleepUntil") is not None:
            client().zadd(f"{self.root}due", {str(wanted): plain(fields["sleepUntil"])})

    def read(self, wanted):
        found = client().hgetall(f"{self.root}doc:{wanted}")
        if not found:
            return None
        return {"_id": wanted} | {name: shown(name, value) for name, value in found.items() if value != ""}

    def delete(self, wanted):
        client().delete(f"{self.root}doc:{wanted}")


def plain(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return micros_of(value) // MILLISECOND if isinstance(value, datetime) else value


def shown(name, value):
    if name in TIMES:
        return datetime_of(int(value) * MILLISECOND)
    return int(value) if name == "payload" else value
