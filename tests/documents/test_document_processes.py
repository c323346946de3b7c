"""Queues in many processes on one source, a process that is killed in its handler, and one that is frozen in it."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import postgres_table_stage
import pytest
import sqlite_stage
from forked_python import ForkedPython
from freezing import freeze
from mongo_stage import DATABASE, MongoStage
from redis_hash_stage import RedisStage

from amounts import amount
from every_store import running_server
from rota.documents import DocumentQueue
from rota.testing.document_suite.stage import wait_for

CHILD = Path(__file__).parent / "document_child.py"
PROCESSES = 8


def mongo(_folder):
    url = urlsplit(running_server("mongo-replica").url())._replace(path=f"/{DATABASE}").geturl()
    return MongoStage("mongo-replica", "crowd"), {"url": url, "collection": "crowd", "kind": {}}


def sqlite(folder):
    path = folder / "shop.db"
    return sqlite_stage.ColumnStage(path), by_key(f"sqlite:///{path}", "orders")


def postgres(_folder):
    return postgres_table_stage.ColumnStage(), by_key(running_server("postgres").url(), "shop.orders")


def redis(_folder):
    return RedisStage(), by_key(running_server("redis").url(), "orders")


def by_key(url, collection):
    return {"url": url, "collection": collection, "kind": {"key": "_id"}}


class Crowd:
    """Processes on one source, and what they wrote down."""

    def __init__(self, make, fields, folder):
        self.stage, self.place = make(folder)
        self.source = self.stage.make_source(has_lock=fields == "all")
        self.source.prepare()
        self.fields = fields
        self.path = folder / "record"
        self.children = []

    def start(self, how, lock_for="1m"):
        said = {**self.place, "fields": self.fields, "how": how, "record": str(self.path), "lock_for": lock_for}
        child = ForkedPython([str(CHILD), json.dumps(said)], cwd=CHILD.parent, env=dict(os.environ))
        self.children.append(child)
        return child

    def lines(self, word):
        text = self.path.read_text() if self.path.exists() else ""
        return [line[1:] for line in map(json.loads, text.splitlines()) if line[0] == word]

    def time_of(self, wanted):
        return self.stage.read(wanted).get("sleepUntil")

    def take_up(self):
        """Run what is due in this process, once."""
        seen = []
        with DocumentQueue(self.source, seen.append) as queue:
            wait_for(lambda: len(seen) == 1 and not queue.is_processing)
        return seen

    def close(self):
        for child in self.children:
            child.kill()
            child.stdout.close()
        self.source.close()


@pytest.fixture(params=["all", "four"])
def fields(request):
    return request.param


@pytest.fixture(params=[mongo, sqlite, postgres, redis], ids=lambda make: make.__name__)
def crowd(request, fields, tmp_path):
    crowd = Crowd(request.param, fields, tmp_path)
    yield crowd
    crowd.close()


def test_eight_processes_run_each_document_once_per_due_time(crowd):
    now = datetime.now(UTC).replace(microsecond=0)
    once = [f"once-{one}" for one in range(amount(60, 2000))]
    often = [f"often-{one}" for one in range(4)]
    rest = {"kind": "wanted", "payload": 1}
    crowd.stage.insert(
        *({"_id": one, "sleepUntil": now - timedelta(seconds=late), **rest} for late, one in enumerate(once)),
        *({"_id": one, "sleepUntil": now, "interval": "every 1s", **rest} for one in often),
    )
    children = [crowd.start("work") for _ in range(PROCESSES)]

    def have_run(times):
        runs = Counter(of for of, _, _ in crowd.lines("ran"))
        return all(runs[one] >= 1 for one in once) and all(runs[one] >= times for one in often)

    wait_for(lambda: have_run(2))
    for one in often:
        crowd.stage.change(one, sleepUntil=None)  # the owner's word counts, whether it runs or not
    wait_for(lambda: all(crowd.time_of(one) is None for one in (*once, *often)))
    wait_for(lambda: len(crowd.lines("started")) == PROCESSES)  # before that, a signal has its default action
    for child in children:
        child.send_signal(signal.SIGTERM)
    assert [child.wait(60) for child in children] == [0] * PROCESSES
    runs = crowd.lines("ran")
    assert max(Counter((of, nominal) for of, nominal, _ in runs).values()) == 1
    assert Counter(of for of, _, _ in runs if of in once) == dict.fromkeys(once, 1)
    assert len({pid for _, _, pid in runs}) > 1


def test_a_document_whose_process_was_killed_is_taken_up_after_the_lock(crowd):
    nominal = recurring(crowd)
    child = crowd.start("hang", "1s")
    wait_for(lambda: crowd.lines("ran"))
    child.kill()
    child.wait(60)
    assert crowd.take_up()
    assert len(crowd.lines("ran")) == 1
    assert crowd.time_of("a") == nominal + timedelta(hours=1)  # for the same nominal time
    assert "lockedBy" not in crowd.stage.read("a")


def test_a_process_that_was_frozen_beyond_its_lock_changes_nothing(crowd):
    nominal = recurring(crowd)
    child = crowd.start("late", "2s")
    wait_for(lambda: crowd.lines("ran"))
    freeze(child.pid, getattr(crowd.stage, "path", None))
    assert crowd.take_up()
    assert crowd.time_of("a") == nominal + timedelta(hours=1)
    crowd.stage.change("a", payload=7)
    before = crowd.stage.read("a")
    crowd.path.with_name("record.release").touch()
    os.kill(child.pid, signal.SIGCONT)
    wait_for(lambda: crowd.lines("locked out") == [["a"]])
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    assert crowd.stage.read("a") == before


def recurring(crowd):
    """One document that has been due for a minute, and then every hour."""
    nominal = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    crowd.stage.insert({"_id": "a", "sleepUntil": nominal, "interval": "every 1h", "kind": "wanted", "payload": 1})
    return nominal
