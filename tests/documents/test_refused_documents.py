"""Documents whose owner forbids every write: by a validator, a constraint or a trigger. The others run."""

from __future__ import annotations

import sqlite3
import time
from types import SimpleNamespace

import pytest
from mongo_stage import MongoStage
from postgres_table_stage import fresh_table, owner, pool
from queue_stage import ago, document, wait_for

from rota.clock import utc_micros
from rota.documents import DocumentQueue, Fields, MemorySource, MongoSource, PostgresSource, SqliteSource
from rota.documents import renewer as renewing
from rota.documents.renewer import Renewer
from rota.documents.runs import DocumentRun, Running
from rota.documents.sources import refused
from rota.engine.events import Events
from rota.errors import StoreError
from rota.model.micros import SECOND
from rota.testing.document_suite.stage import LONG

SCHEDULE = """"sleepUntil" timestamptz, interval text, "repeatUntil" timestamptz, "autoRemove" boolean,
"lockedUntil" timestamptz, "lockedBy" text, total integer"""
ROWS = [(1, -1), (2, 1), (3, 1), (4, 1)]  # ids and totals: the oldest is the one that must not be written


def on_mongo(fields, _folder):
    stage = MongoStage("mongo", "refused")
    stage.collection.drop()
    stage.insert(*({"_id": id_, "sleepUntil": ago(99 - id_), "total": total} for id_, total in ROWS))
    rule = {"validator": {"total": {"$gte": 0}}, "validationLevel": "strict"}
    stage.collection.database.command("collMod", "refused", **rule)
    correct = stage.collection.with_options().update_one
    return MongoSource(stage.collection, fields=fields), "_id", lambda: correct({"_id": 1}, {"$set": {"total": 0}})


def on_postgres(fields, _folder):
    fresh_table("refused", f"id bigint PRIMARY KEY, {SCHEDULE}")
    for id_, total in ROWS:
        owner().execute(
            'INSERT INTO shop.refused (id, "sleepUntil", total) VALUES (%s, %s, %s)', (id_, ago(99 - id_), total)
        )
    owner().execute("ALTER TABLE shop.refused ADD CONSTRAINT paid CHECK (total >= 0) NOT VALID")
    source = PostgresSource(pool(), "shop.refused", fields=fields)
    return source, "id", lambda: owner().execute("UPDATE shop.refused SET total = 0 WHERE id = 1")


def on_sqlite(fields, folder):
    shop = sqlite3.connect(folder / "shop.db", isolation_level=None)
    columns = "id PRIMARY KEY, sleepUntil, interval, repeatUntil, autoRemove, lockedUntil, lockedBy, total"
    shop.execute(f"CREATE TABLE orders ({columns})")
    rows = [(id_, ago(99 - id_).isoformat(), total) for id_, total in ROWS]
    shop.executemany("INSERT INTO orders (id, sleepUntil, total) VALUES (?, ?, ?)", rows)
    shop.execute(
        "CREATE TRIGGER paid BEFORE UPDATE ON orders WHEN new.total < 0 BEGIN SELECT RAISE(ABORT, 'not paid'); END"
    )
    source = SqliteSource(folder / "shop.db", "orders", fields=fields)
    return source, "id", lambda: shop.execute("UPDATE orders SET total = 0 WHERE id = 1")


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("fields", [Fields(), Fields.four()], ids=["lock-fields", "four-fields"])
@pytest.mark.parametrize("make", [on_mongo, on_postgres, on_sqlite], ids=["mongo", "postgres", "sqlite"])
def test_a_document_that_cannot_be_locked_is_told_and_the_others_run(make, fields, concurrency, tmp_path, monkeypatch):
    source, key, correct = make(fields, tmp_path)
    seen, errors = [], []
    queue = DocumentQueue(source, lambda one: seen.append(one[key]), concurrency=concurrency, on_error=errors.append)
    with queue:
        wait_for(lambda: queue.is_idle)
        assert sorted(seen) == [2, 3, 4]
        assert "does not let 1 be locked" in str(errors[0])
        correct()
        monkeypatch.setattr(refused, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 120))
        queue.wake()
        wait_for(lambda: 1 in seen)
    source.close()


def test_no_more_than_a_thousand_documents_are_left_out():
    left_out = refused.Refused()
    for number in range(refused.MOST + 5):
        left_out.add(number)
    assert len(left_out.ids()) == refused.MOST


class Choosy(MemorySource):
    """Refuses to renew the lock of one document."""

    batches = ()

    def renew(self, locked, lock_for):
        self.batches = (*self.batches, len(locked))
        if any(one.id == "bad" for one in locked):
            raise StoreError("not this one")
        return super().renew(locked, lock_for)


def test_a_lock_that_cannot_be_renewed_does_not_cost_the_others_theirs(monkeypatch, caplog):
    monkeypatch.setattr(renewing, "MAX_BATCH", 3)
    source = Choosy([document(one) for one in ("a", "bad", "c", "d")])
    running = Running()
    runs = {one.id: DocumentRun(one, 0) for one in source.lock_next(10, SECOND, SECOND).documents}
    for run in runs.values():
        running.add(run)
    before = {id_: run.locked.locked_until for id_, run in runs.items()}
    Renewer(source, running, Events(), SimpleNamespace(now=utc_micros), lock_for=LONG).turn()
    renewed = {id_ for id_, run in runs.items() if run.locked.locked_until > before[id_]}
    assert renewed == {"a", "c", "d"}
    assert max(source.batches) == 3
    assert "refuses to renew the lock of 'bad'" in caplog.text
