"""What is particular to documents of MongoDB: paths, types, ids, indexes, clocks and clients."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import bson
import pymongo
import pytest
from bson import Decimal128, Int64, MaxKey, ObjectId, Timestamp
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions
from bson.datetime_ms import DatetimeMS
from bson.raw_bson import RawBSONDocument
from forking import in_child
from mongo_stage import MongoStage, client_of

from every_store import running_server
from rota.documents import DocumentQueue, Fields, MongoSource
from rota.documents.contract import Update, Verdict
from rota.documents.sources.mongo.queries import Queries
from rota.errors import BadOption, StoreError, StoreUnavailable
from rota.model.micros import SECOND
from rota.testing.document_suite.stage import LONG, MINUTE, wait_for

DEEP = Fields(
    sleep_until="job.at.sleep", interval="job.every", repeat_until="job.end", auto_remove="job.gone",
    locked_until="job.lock.until", locked_by="job.lock.by",
)  # fmt: skip
FOUR_DEEP = Fields.four(
    sleep_until="job.at.sleep", interval="job.every", repeat_until="job.end", auto_remove="job.gone"
)


@pytest.fixture
def orders():
    stage = MongoStage("mongo", "odd")
    stage.collection.drop()
    return stage.collection


def ago(seconds):
    return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)


def run_all(source, **options):
    seen = []
    with DocumentQueue(source, lambda one: seen.append(one["_id"]), **options) as queue:
        wait_for(lambda: queue.is_idle)
    return seen


@pytest.mark.parametrize("fields", [DEEP, FOUR_DEEP], ids=["lock-fields", "four-fields"])
def test_fields_may_lie_deep_in_the_document(orders, fields):
    orders.insert_many(
        [
            {"_id": 1, "job": {"at": {"sleep": ago(9)}, "every": "@yearly"}},
            {"_id": 2, "job": {"at": {"sleep": ago(8)}, "gone": True}},
            {"_id": 3, "job": {"at": {"sleep": ago(7)}, "every": "@yearly", "end": ago(6)}},
            {"_id": 4, "job": {"every": "@yearly", "other": 5}},
        ]
    )
    source = MongoSource(orders, fields=fields)
    seen = run_all(source)
    assert seen == [1, 2]
    first, third, fourth = orders.find(sort=[("_id", 1)])
    assert first["job"]["at"]["sleep"] > datetime.now(UTC).replace(tzinfo=None)
    assert third["job"]["at"]["sleep"] is None
    assert fourth["job"]["at"]["sleep"].month == 1
    assert fourth["job"]["other"] == 5


@pytest.mark.parametrize("fields", [DEEP, FOUR_DEEP], ids=["lock-fields", "four-fields"])
def test_a_path_through_a_list_is_told_and_does_not_run(orders, fields):
    orders.insert_one({"_id": 1, "job": [{"at": {"sleep": ago(9)}}]})
    orders.insert_one({"_id": 2, "job": {"at": {"sleep": ago(9)}}})
    source = MongoSource(orders, fields=fields)
    source.prepare()
    assert run_all(source) == [2]
    (finding,) = source.check()
    assert finding.kind == "path-through-list"
    assert finding.is_error
    assert "job is a list in 1" in finding.message


def test_ids_of_any_type(orders):
    ids = [
        1, 1.5, "text", "", ObjectId(), True, None, Int64(2**60), Decimal128("1.1"), b"bytes",
        {"a": 1, "b": [1, {"c": 2}]}, datetime(2026, 1, 1),
    ]  # fmt: skip
    for fields in (Fields(), Fields.four()):
        orders.delete_many({})
        orders.insert_many([{"_id": one, "sleepUntil": ago(99 - number)} for number, one in enumerate(ids)])
        source = MongoSource(orders, fields=fields)
        assert run_all(source, concurrency=5) is not None
        assert orders.count_documents({"sleepUntil": None}) == len(ids)
        assert orders.count_documents({"lockedBy": {"$exists": True}}) == 0


def test_the_codec_of_the_owner_is_kept(orders):
    codec = CodecOptions(tz_aware=True, uuid_representation=UuidRepresentation.STANDARD)
    mine = orders.with_options(codec_options=codec)
    mine.insert_one({"_id": uuid4(), "sleepUntil": ago(5), "interval": "@hourly"})
    (locked,) = MongoSource(mine).lock_next(1, LONG, MINUTE).documents
    assert isinstance(locked.id, UUID)
    assert locked.document["sleepUntil"].tzinfo is not None


def test_a_date_outside_of_pythons_calendar_does_not_stop_the_others(orders):
    far = DatetimeMS(-(10**15))
    for fields in (Fields(), Fields.four()):
        orders.delete_many({})
        orders.insert_many([{"_id": 1, "sleepUntil": far}, {"_id": 2, "sleepUntil": far, "interval": "every 1d"}])
        orders.insert_one({"_id": 3, "sleepUntil": ago(5)})
        assert run_all(MongoSource(orders, fields=fields)) == [1, 2, 3]
        first, second = orders.find({"_id": {"$in": [1, 2]}}, sort=[("_id", 1)])
        assert first["sleepUntil"] is None  # its end was written
        assert second["sleepUntil"] > datetime.now(UTC).replace(tzinfo=None)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_a_text_that_is_no_utf8_does_not_stop_the_others(orders, concurrency):
    broken = bson.encode({"_id": 1, "sleepUntil": ago(9), "note": "AAAA"}).replace(b"AAAA", b"\xff\xfe\xff\xfe")
    orders.insert_one(RawBSONDocument(broken))
    orders.insert_one({"_id": 2, "sleepUntil": ago(5)})
    assert run_all(MongoSource(orders), concurrency=concurrency) == [1, 2]


@pytest.mark.parametrize("concurrency", [1, 5])
def test_a_lock_that_is_no_date_is_none(orders, concurrency):
    odd = [Timestamp(2**31 - 1, 1), MaxKey(), "2099-01-01", 5, None]
    orders.insert_many([{"_id": id_, "sleepUntil": ago(9), "lockedUntil": one} for id_, one in enumerate(odd)])
    assert sorted(run_all(MongoSource(orders), concurrency=concurrency)) == [0, 1, 2, 3, 4]


def test_an_index_may_take_longer_than_a_call_and_a_search_may_not(orders):
    """The server ends a command after the time that the driver sends with it."""
    orders.insert_many([{"_id": 1, "sleepUntil": "x"}])
    sent = []

    class Listener(pymongo.monitoring.CommandListener):
        def started(self, event):
            sent.append((event.command_name, event.command.get("maxTimeMS")))

        def succeeded(self, event): ...

        def failed(self, event): ...

    with pymongo.MongoClient(running_server("mongo").url(), event_listeners=[Listener()]) as client:
        source = MongoSource(client[orders.database.name][orders.name])
        source.prepare()
        assert [finding.kind for finding in source.check()] == ["not-a-time"]
    assert {limit for name, limit in sent if name == "createIndexes"} == {None}
    assert all(limit <= 1_500 for name, limit in sent if name == "find")


def test_a_collection_that_does_not_exist_is_told_and_waited_for(orders):
    source = MongoSource(orders)
    (finding,) = source.check()
    assert (finding.kind, finding.command) == ("no-collection", 'db.createCollection("odd")')
    seen = []
    with DocumentQueue(source, lambda one: seen.append(one["_id"])) as queue:
        wait_for(lambda: queue.is_idle)
        orders.insert_one({"_id": 1, "sleepUntil": ago(5)})
        queue.wake()
        wait_for(lambda: seen)
    assert seen == [1]


def test_a_missing_index_is_told_with_the_command_that_makes_it(orders):
    orders.insert_one({"_id": 1, "sleepUntil": ago(5)})
    source = MongoSource(orders, condition={"status": "open", "total": {"$gt": 5}})
    (finding,) = source.check()
    assert finding.kind == "no-index"
    assert finding.command == (
        'db.odd.createIndex({"status": 1, "sleepUntil": 1, "lockedUntil": 1}, '
        '{"partialFilterExpression": {"sleepUntil": {"$type": "date"}}})'
    )
    assert any("status_1_sleepUntil_1" in made for made in source.prepare())
    assert source.check() == []
    assert source.prepare() == []


def test_the_command_fits_a_name_that_is_no_property(orders):
    named = orders.database["my-orders"]
    named.drop()
    named.insert_one({"_id": 1, "sleepUntil": ago(5)})
    (finding,) = MongoSource(named).check()
    assert finding.command.startswith('db.getCollection("my-orders").createIndex({')


def test_an_index_of_the_owner_serves_as_well(orders):
    orders.insert_one({"_id": 1, "sleepUntil": ago(5)})
    orders.create_index([("sleepUntil", 1), ("status", 1)])
    assert MongoSource(orders).check() == []
    orders.drop_indexes()
    orders.create_index([("status", 1), ("sleepUntil", 1)])
    assert [finding.kind for finding in MongoSource(orders).check()] == ["no-index"]
    assert MongoSource(orders, condition={"status": "open"}).check() == []


@pytest.mark.parametrize("fields", [Fields(), Fields.four()], ids=["lock-fields", "four-fields"])
def test_due_documents_are_found_by_the_index(orders, fields):
    source = MongoSource(orders, fields=fields, condition={"status": "open"})
    source.prepare()
    orders.insert_many([{"sleepUntil": ago(-9999), "status": "open"} for _ in range(300)])
    orders.insert_many([{"sleepUntil": None, "status": "open"} for _ in range(300)])
    now = source.now()
    query = Queries(fields, {"status": "open"}).sleeping(now + SECOND, now)
    plan = orders.find(query).sort("sleepUntil", 1).limit(10).explain()
    assert plan["executionStats"]["totalKeysExamined"] <= 1
    assert plan["executionStats"]["totalDocsExamined"] == 0
    unscheduled = orders.find(Queries(fields, None).unscheduled()).explain()
    assert unscheduled["executionStats"]["totalDocsExamined"] == 0


def test_the_servers_clock_decides_not_this_machines(orders, monkeypatch):
    source = MongoSource(orders)
    orders.insert_one({"_id": "due", "sleepUntil": ago(60)})
    orders.insert_one({"_id": "later", "sleepUntil": ago(-60)})
    source._clock.sync(source.now() + 7200 * SECOND, 0)  # an estimate that is two hours ahead
    monkeypatch.setattr(source._clock, "now", lambda: 10**18 // 500)
    locked = source.lock_next(10, LONG, MINUTE).documents
    assert [one.id for one in locked] == ["due"]
    assert source.lock_next(1, LONG, MINUTE).documents == []  # a busy queue takes another way


def test_the_collection_may_be_a_function(orders):
    asked = []

    def find():
        asked.append(os.getpid())
        return orders

    source = MongoSource(find)
    assert asked == []
    orders.insert_one({"_id": 1, "sleepUntil": ago(5)})
    assert run_all(source) == [1]
    assert len(asked) == 1
    assert source.name == "owners.odd"


@pytest.mark.parametrize("wrong", ["orders", None, 5])
def test_what_is_no_collection_is_refused(wrong):
    with pytest.raises(BadOption, match="takes a collection of pymongo"):
        MongoSource(wrong)


def test_a_function_that_returns_something_else_is_refused():
    with pytest.raises(BadOption, match="takes a collection of pymongo"):
        MongoSource(lambda: client_of("mongo")["owners"]).now()


def test_a_collection_from_before_a_fork_is_refused(orders):
    source = MongoSource(orders)
    source.now()

    def use():
        with pytest.raises(StoreError, match="before a fork"):
            source.lock_next(1, LONG, MINUTE)

    assert in_child(use) == 0


def test_a_server_that_is_away_is_an_outage(monkeypatch):
    monkeypatch.setattr("rota.documents.sources.mongo.connection.DEADLINE", 0.1)
    client = pymongo.MongoClient("mongodb://127.0.0.1:9")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        MongoSource(client.shop.orders).lock_next(1, LONG, MINUTE)
    client.close()


def test_side_records_are_gone_when_nothing_is_put_off(orders):
    for fields in (Fields(), Fields.four()):
        orders.insert_many([{"sleepUntil": ago(5), "interval": "@yearly"} for _ in range(20)])
        run_all(MongoSource(orders, fields=fields), concurrency=4)
        assert orders.database["rota_documents"].count_documents({}) == 0
        orders.delete_many({})


def test_a_lock_is_written_with_the_word_of_a_majority(orders):
    source = MongoSource(orders.with_options(write_concern=pymongo.WriteConcern(0)))
    orders.insert_one({"_id": 1, "sleepUntil": ago(5)})
    (locked,) = source.lock_next(1, LONG, MINUTE).documents
    assert source.update([Update(locked=locked)])[0].verdict is Verdict.APPLIED


def test_the_package_needs_no_driver():
    code = "import sys; sys.modules['pymongo'] = None; import rota.documents as d; d.DocumentQueue, d.MemorySource\n"
    code += "try:\n    d.MongoSource\nexcept ImportError as err:\n    assert 'rota[mongo]' in str(err), err\n"
    code += "else:\n    raise SystemExit(5)\n"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_url_of_the_server_is_not_in_errors(orders):
    assert running_server("mongo").url() not in str(MongoSource(orders).check())


def test_a_lock_that_is_renewed_to_the_time_that_it_has_is_kept(orders, monkeypatch):
    orders.insert_one({"_id": 1, "sleepUntil": ago(9)})
    source = MongoSource(orders, fields=Fields.four())
    (locked,) = source.lock_next(1, LONG, MINUTE).documents
    monkeypatch.setattr(source, "_lock_time", lambda _lock_for: locked.locked_until)  # its milliseconds are random
    assert source.renew([locked], LONG) == [locked]
    (found,) = source.search(10).documents
    assert found.state == "running"
    assert source.update([Update(locked=locked, sleep_until=None)])[0].verdict is Verdict.APPLIED
