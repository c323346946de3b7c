"""What is particular to hashes of Redis: the index beside them, the owner's commands, ids, clients."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import redis
from redis.crc import key_slot
from redis_hash_stage import RedisStage, client

from every_store import running_server
from rota import App
from rota.documents import DocumentQueue, Fields, RedisSource
from rota.documents.contract import SideRecord, Update, Verdict
from rota.errors import BadOption, StoreUnavailable
from rota.testing.document_suite.stage import LONG, MINUTE, wait_for

KINDS = pytest.mark.parametrize("fields", [Fields(), Fields.four()], ids=["lock-fields", "four-fields"])
ROOT = "{odd}:"


@pytest.fixture(autouse=True)
def _empty():
    RedisStage("odd")


def ago(seconds):
    return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)


def millis(seconds):
    return int(ago(seconds).timestamp() * 1000)


def run_all(source, **options):
    seen = []
    with DocumentQueue(source, lambda one: seen.append(one["id"]), **options) as queue:
        wait_for(lambda: queue.is_idle)
    return seen


@KINDS
def test_an_owner_puts_changes_and_deletes_documents(fields):
    source = RedisSource(client(), "odd", fields=fields)
    source.put(17, {"sleepUntil": ago(9), "autoRemove": True, "total": 5})
    source.put("later", {"sleepUntil": ago(-99), "interval": "@hourly", "repeatUntil": ago(-999)})
    source.put("gone", {"sleepUntil": ago(9)})
    source.put("later", {"sleepUntil": ago(5), "interval": None})
    source.delete("gone")
    assert source.check() == []
    assert run_all(source) == [17, "later"]
    assert client().hgetall(f"{ROOT}doc:later")["sleepUntil"] == ""
    assert sorted(client().scan_iter(f"{ROOT}*")) == [f"{ROOT}doc:later"]


@pytest.mark.parametrize("wrong", [{}, {"x": ["list"]}, {"x": b"bytes"}])
def test_what_a_hash_cannot_hold_is_refused(wrong):
    with pytest.raises(BadOption):
        RedisSource(client(), "odd").put(1, wrong)


def test_documents_that_the_index_lacks_are_told_and_added():
    client().hset(f"{ROOT}doc:1", mapping={"sleepUntil": millis(9)})
    client().hset(f"{ROOT}doc:2", mapping={"sleepUntil": millis(9)})
    client().zadd(f"{ROOT}due", {"2": millis(-99)})
    source = RedisSource(client(), "odd")
    (finding,) = source.check()
    assert finding.kind == "not-indexed"
    assert finding.is_error
    assert "2 documents" in finding.message
    assert source.lock_next(5, LONG, MINUTE).documents == []
    assert source.prepare() == ["added 2 documents to the index {odd}:due"]
    assert source.prepare() == []
    assert source.check() == []
    assert run_all(source) == [1, 2]


def test_the_command_of_a_finding_mends_it():
    client().hset(f"{ROOT}doc:1", mapping={"sleepUntil": millis(9)})
    source = RedisSource(client(), "odd")
    (finding,) = source.check()
    client().execute_command(*finding.command.split())
    assert source.check() == []


@KINDS
def test_the_hash_counts_and_the_index_is_mended(fields):
    source = RedisSource(client(), "odd", fields=fields)
    source.put("moved", {"sleepUntil": ago(9)})
    source.put("done", {"sleepUntil": ago(9)})
    source.put("deleted", {"sleepUntil": ago(9)})
    client().hset(f"{ROOT}doc:moved", "sleepUntil", millis(-50))
    client().hset(f"{ROOT}doc:done", "sleepUntil", "")
    client().delete(f"{ROOT}doc:deleted")
    batch = source.lock_next(5, LONG, MINUTE)
    assert (batch.documents, batch.next_due) == ([], client().zscore(f"{ROOT}due", "moved") * 1000)
    assert client().zrange(f"{ROOT}due", 0, -1) == ["moved"]


@pytest.mark.parametrize("wrong", ["yesterday", "2026-01-31T09:00:00Z", "1769850000.5", "1769850000000000000"])
def test_what_is_no_time_is_told_and_does_not_run(wrong):
    source = RedisSource(client(), "odd")
    client().hset(f"{ROOT}doc:1", "sleepUntil", wrong)
    client().zadd(f"{ROOT}due", {"1": millis(9)})
    (finding,) = source.check()
    assert (finding.kind, wrong in finding.message) == ("not-a-time", True)
    assert source.lock_next(5, LONG, MINUTE).documents == []


def test_a_key_that_is_no_hash_is_told():
    client().set(f"{ROOT}doc:1", "text")
    (finding,) = RedisSource(client(), "odd").check()
    assert "holds no hash" in finding.message


def test_a_condition_looks_past_any_number_of_others():
    source = RedisSource(client(), "odd", condition={"status": "open", "n": 1})
    for number in range(230):
        source.put(number, {"sleepUntil": ago(99), "status": "closed", "n": 1})
    source.put("a", {"sleepUntil": ago(9), "status": "open", "n": 1})
    assert run_all(source) == ["a"]


@KINDS
def test_ids_that_are_no_text_pass_unchanged(fields):
    raw = redis.Redis.from_url(running_server("redis").url())
    for member in (b"\xff\xfe 1", "ü {x} '\"\\".encode(), b"007", b"-5"):
        raw.hset(ROOT.encode() + b"doc:" + member, "sleepUntil", millis(9))
        raw.zadd(f"{ROOT}due", {member: millis(9)})
    source = RedisSource(raw, "odd", fields=fields)
    locked = source.lock_next(9, LONG, MINUTE).documents
    assert {one.id for one in locked} >= {"007", -5}
    assert None not in source.renew(locked, LONG)
    assert {one.verdict for one in source.update([Update(locked=one) for one in locked])} == {Verdict.APPLIED}
    assert raw.zcard(f"{ROOT}due") == 0
    raw.delete(*raw.scan_iter(f"{ROOT}*"))  # a client that decodes could not even list them
    raw.close()


def test_scripts_are_sent_again_after_the_server_has_forgotten_them():
    source = RedisSource(running_server("redis").url(), "odd")
    source.put(1, {"sleepUntil": ago(9)})
    client().script_flush()
    assert run_all(source) == [1]
    source.close()


def test_a_server_that_is_away_is_an_outage():
    with pytest.raises(StoreUnavailable, match=r"redis at 127\.0\.0\.1:9"):
        RedisSource("redis://127.0.0.1:9", "odd").lock_next(1, LONG, MINUTE)


@pytest.mark.parametrize(("given", "prefix"), [(5, "odd"), (None, "odd"), ("redis://h", ""), ("redis://h", "{a}")])
def test_what_is_no_client_or_prefix_is_refused(given, prefix):
    with pytest.raises(BadOption):
        RedisSource(given, prefix)


@KINDS
def test_all_keys_of_one_source_lie_in_one_slot_of_a_cluster(fields):
    before = set(client().scan_iter())  # of other tests on this server
    source = RedisSource(client(), "odd", fields=fields)
    for number in range(20):
        source.put(f"order {number} }}{{", {"sleepUntil": ago(5)})
    locked = source.lock_next(3, LONG, MINUTE).documents
    side = SideRecord(nominal=0, failures=1, error="Boom")
    source.update([Update(locked=locked[0], sleep_until=source.now() + LONG, side=side)])
    keys = set(client().scan_iter()) - before
    assert {f"{ROOT}due", f"{ROOT}side", f"{ROOT}doc:order 0 }}{{"} <= keys
    assert len(keys) == 22
    assert {key_slot(key.encode()) for key in keys} == {key_slot(ROOT.encode())}  # the key that scripts are sent by


@KINDS
def test_a_key_that_holds_no_hash_does_not_stop_the_documents_behind_it(fields):
    source = RedisSource(client(), "odd", fields=fields)
    client().set(f"{ROOT}doc:1", "a text")
    client().zadd(f"{ROOT}due", {"1": millis(99)})
    source.put(2, {"sleepUntil": ago(9)})
    assert [one.id for one in source.search(9).documents] == [2]
    assert run_all(source) == [2]


def test_an_id_cannot_become_a_command_of_its_own():
    client().hset(f'{ROOT}doc:1"\nFLUSHALL', "sleepUntil", millis(9))
    (finding,) = RedisSource(client(), "odd").check()
    assert finding.command.endswith(r'"1\"\nFLUSHALL"')


def test_an_id_that_is_no_text_is_shown_escaped():
    source = RedisSource(client(), "odd")
    client().hset(f"{ROOT}doc:".encode() + b"\xff", "sleepUntil", millis(9))
    client().zadd(f"{ROOT}due", {b"\xff": millis(9)})
    app = App("memory://")
    DocumentQueue(source, lambda _: None, name="odd", app=app)
    (facts,) = app.documents.list("odd")
    assert facts.id == r"\udcff"
    assert msgspec.json.encode(app.documents.why("odd", "\udcff"))
    app.close()
