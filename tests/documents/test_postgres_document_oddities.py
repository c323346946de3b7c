# ruff: noqa: S608 - the names are the test's own
"""What is particular to rows of PostgreSQL: types, names, ids, the owner's transactions, pools."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from forking import in_child
from postgres_table_stage import fresh_table, owner, pool
from psycopg_pool import ConnectionPool

from every_store import running_server
from rota.documents import DocumentQueue, Fields, PostgresSource
from rota.documents.contract import SideRecord, Update, Verdict
from rota.errors import BadOption, StoreError, StoreUnavailable
from rota.testing.document_suite.stage import BRIEF, LONG, MINUTE, wait_for

SCHEDULE = """"sleepUntil" timestamptz, interval text, "repeatUntil" timestamptz, "autoRemove" boolean,
"lockedUntil" timestamptz, "lockedBy" text, status text, data jsonb"""
KINDS = pytest.mark.parametrize("fields", [Fields(), Fields.four()], ids=["lock-fields", "four-fields"])


@pytest.fixture
def orders():
    fresh_table("odd", f"id bigint PRIMARY KEY, {SCHEDULE}")
    return "shop.odd"


def ago(seconds):
    return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)


def insert(number, at, **more):
    names = ["id", "sleepUntil", *more]
    quoted = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join("%s" for _ in names)
    owner().execute(f"INSERT INTO shop.odd ({quoted}) VALUES ({marks})", (number, at, *more.values()))


def run_all(source, **options):
    seen = []
    with DocumentQueue(source, lambda one: seen.append(one["id"]), **options) as queue:
        wait_for(lambda: queue.is_idle)
    return seen


@KINDS
@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("uuid", [uuid.uuid4(), uuid.uuid4()]),
        ("text", ["", "it's", "7"]),
        ("smallint", [1, -5]),
        ("numeric", [Decimal("1.10"), Decimal(10**30)]),
        ("double precision", [0.1, 1e300]),
        ("bytea", [b"", b"\0\xff"]),
        ("timestamptz", [datetime(2026, 1, 1, tzinfo=UTC)]),
        ("date", [datetime(2026, 1, 1).date()]),
        ("integer[]", [[1, 2], []]),
        ("boolean", [True, False]),
    ],
)
def test_ids_of_any_type(fields, kind, ids):
    fresh_table("odd", f"id {kind} PRIMARY KEY, {SCHEDULE}")
    for one in ids:
        insert(one, ago(9))
    assert run_all(PostgresSource(pool(), "shop.odd", fields=fields), concurrency=3) is not None
    assert owner().execute('SELECT count(*) AS n FROM shop.odd WHERE "sleepUntil" IS NULL').fetchone() == {
        "n": len(ids)
    }
    assert owner().execute("SELECT count(*) AS n FROM shop.rota_documents").fetchone() == {"n": 0}


@KINDS
def test_infinity_is_a_time_that_never_comes_or_came_long_ago(orders, fields):
    insert(1, "infinity")
    insert(2, "-infinity")
    insert(3, ago(9), interval="@yearly", repeatUntil="infinity")
    assert run_all(PostgresSource(pool(), orders, fields=fields)) == [2, 3]
    ((after),) = owner().execute('SELECT "sleepUntil" FROM shop.odd WHERE id = 3').fetchall()
    assert after["sleepUntil"] > datetime.now(UTC)


@KINDS
def test_a_row_that_its_owner_has_locked_is_left_out_and_not_waited_for(orders, fields):
    insert(1, ago(9))
    insert(2, ago(8))
    source = PostgresSource(pool(), orders, fields=fields)
    with psycopg.connect(running_server("postgres").url()) as other:
        other.execute("SELECT * FROM shop.odd WHERE id = 1 FOR UPDATE")
        assert [one.id for one in source.lock_next(10, LONG, MINUTE).documents] == [2]
        batch = source.lock_next(10, LONG, MINUTE)
        assert batch.documents == []
        assert batch.next_due is not None
        assert batch.next_due <= batch.now
    assert [one.id for one in source.lock_next(10, LONG, MINUTE).documents] == [1]


def test_a_column_may_be_added_while_a_queue_runs(orders):
    source = PostgresSource(pool(), orders)
    for number in range(12):
        insert(number, ago(9))
        assert len(source.lock_next(1, LONG, MINUTE).documents) == 1
    owner().execute("ALTER TABLE shop.odd ADD COLUMN more integer DEFAULT 5")
    insert(99, ago(9))
    (locked,) = source.lock_next(1, LONG, MINUTE).documents
    assert locked.document["more"] == 5


@KINDS
def test_a_column_of_whole_seconds_can_hold_a_lock(fields):
    fresh_table("odd", "id bigint PRIMARY KEY, " + SCHEDULE.replace("timestamptz", "timestamptz(0)"))
    insert(1, ago(9))
    source = PostgresSource(pool(), "shop.odd", fields=fields)
    (locked,) = source.lock_next(1, BRIEF, MINUTE).documents
    (again,) = wait_for(lambda: source.lock_next(1, LONG, MINUTE).documents)
    assert again.side.nominal == locked.side.nominal
    side = SideRecord(nominal=again.side.nominal, failures=1, error="Boom\0")
    retry = Update(locked=again, sleep_until=source.now() - 3_000_001, side=side)
    assert source.update([retry])[0].verdict is Verdict.APPLIED
    (third,) = source.lock_next(1, LONG, MINUTE).documents
    assert (third.side.failures, third.side.error) == (1, "Boom\ufffd")


def test_what_a_table_lacks_is_told_with_the_command_that_mends_it():
    columns = SCHEDULE.replace('"sleepUntil" timestamptz', '"sleepUntil" timestamp').replace('"lockedBy" text,', "")
    fresh_table("odd", f"id bigint, {columns}")
    source = PostgresSource(pool(), "shop.odd")
    with pytest.raises(StoreError, match="no column lockedBy"):
        source.lock_next(1, LONG, MINUTE)
    told = []
    while found := source.check():
        told.append(found[0].kind)
        assert found[0].command
        owner().execute(found[0].command)
    assert told == ["no-column", "not-a-time", "key-not-unique", "no-index"]
    assert source.lock_next(1, LONG, MINUTE).documents == []


def test_a_column_that_is_added_as_told_takes_what_its_owner_writes():
    fresh_table("odd", "id bigint PRIMARY KEY")
    source = PostgresSource(pool(), "shop.odd")
    while found := source.check():
        for finding in found:
            owner().execute(finding.command)
    insert(1, ago(5), autoRemove=True)
    assert run_all(source) == [1]
    assert owner().execute("SELECT * FROM shop.odd").fetchone() is None


def test_json_that_is_not_jsonb_is_told():
    fresh_table("odd", "id bigint PRIMARY KEY, data json")
    four = Fields.four(sleep_until="data.at", interval="data.i", repeat_until="data.e", auto_remove="data.r")
    source = PostgresSource(pool(), "shop.odd", fields=four)
    (finding,) = source.check()
    assert finding.kind == "not-json"
    owner().execute(finding.command)
    assert [one.kind for one in source.check()] == ["no-index"]


@pytest.mark.parametrize("wrong", ["2026-01-31T09:00:00", "2026-01-31T09:00:00+02:00", "2026-13-31T09:00:00Z", 5, True])
def test_times_in_json_are_texts_in_utc(orders, wrong):
    four = Fields.four(sleep_until="data.at", interval="data.i", repeat_until="data.e", auto_remove="data.r")
    source = PostgresSource(pool(), orders, fields=four)
    source.prepare()
    insert(1, None, data=psycopg.types.json.Jsonb({"at": wrong}))
    insert(2, None, data=psycopg.types.json.Jsonb({"at": "2026-01-31T09:00:00Z"}))
    insert(3, None, data=psycopg.types.json.Jsonb([{"at": "2026-01-31T09:00:00Z"}]))
    assert [one.kind for one in source.check()] == ["path-through-list", "not-a-time"]
    assert run_all(source) == [2]


def test_a_table_that_does_not_exist_is_told():
    source = PostgresSource(pool(), "shop.nothing")
    assert [one.kind for one in source.check()] == ["no-table"]
    with pytest.raises(StoreError, match="does not exist"):
        source.lock_next(1, LONG, MINUTE)


@KINDS
def test_names_are_data(fields):
    columns = '"the id" bigint PRIMARY KEY, "100%" timestamptz, "%s" text, r timestamptz, a boolean'
    fresh_table('or""ders; --%s', f"{columns}, u timestamptz, b text")
    owner().execute('INSERT INTO shop."or""ders; --%%s" ("the id", "100%%") VALUES (1, %s)', (ago(9),))
    four = {"sleep_until": "100%", "interval": "%s", "repeat_until": "r", "auto_remove": "a"}
    chosen = Fields(**four, locked_until="u", locked_by="b") if fields.has_lock else Fields.four(**four)
    source = PostgresSource(pool(), 'shop.or"ders; --%s', fields=chosen, key="the id")
    assert len(source.prepare()) == 2
    assert source.check() == []
    (locked,) = source.lock_next(1, LONG, MINUTE).documents
    assert source.update([Update(locked=locked)])[0].verdict is Verdict.APPLIED


@pytest.mark.parametrize(
    "condition",
    [{"status": "50% off", "data": None}, "status LIKE '50%' -- percent", ("status = %s AND id > %s", ["50% off", 0])],
)
def test_a_condition_chooses_rows(orders, condition):
    insert(1, ago(9), status="50% off")
    insert(2, ago(8), status="other")
    source = PostgresSource(pool(), orders, condition=condition)
    source.prepare()
    assert source.check() == []
    assert run_all(source) == [1]


@KINDS
def test_due_rows_are_found_by_the_index(orders, fields):
    source = PostgresSource(pool(), orders, fields=fields, condition={"status": "open"})
    source.prepare()
    owner().execute(
        'INSERT INTO shop.odd (id, "sleepUntil", status) SELECT n, %s, %s FROM generate_series(1, 3000) n',
        (ago(-9999), "open"),
    )
    owner().execute("ANALYZE shop.odd")
    sql, params = source._queries.oldest(source.now(), source.now() + 1, 5)
    plan = "\n".join(row["QUERY PLAN"] for row in owner().execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", params))
    assert "rota_due_odd" in plan
    assert "rows=0" in plan
    assert "Sort" not in plan


def test_a_url_is_as_good_as_a_pool_and_its_password_is_not_in_errors(orders):
    insert(1, ago(9))
    url = running_server("postgres").url()
    source = PostgresSource(url, orders)
    assert run_all(source) == [1]
    source.close()
    with pytest.raises(StoreError, match="syntax error") as caught:
        PostgresSource(url, orders, condition="this is no SQL").lock_next(1, LONG, MINUTE)
    assert "rota:" not in str(caught.value)


def test_a_pool_of_the_owner_may_be_serializable(orders):
    options = {"options": "-c default_transaction_isolation=serializable"}
    with ConnectionPool(running_server("postgres").url(), min_size=1, kwargs=options, open=True) as made:
        for number in range(20):
            insert(number, ago(9))
        assert len(run_all(PostgresSource(made, orders), concurrency=5)) == 20
        with made.connection() as connection:
            assert not connection.autocommit


def test_a_pool_from_before_a_fork_is_refused(orders):
    source = PostgresSource(pool(), orders)

    def use():
        with pytest.raises(StoreError, match="before a fork"):
            source.lock_next(1, LONG, MINUTE)

    assert in_child(use) == 0


def test_a_server_that_is_away_is_an_outage(monkeypatch):
    monkeypatch.setattr("rota.documents.sources.postgres.connection.DEADLINE", 0.3)
    source = PostgresSource("postgresql://127.0.0.1:9/shop?connect_timeout=1", "orders")
    with pytest.raises(StoreUnavailable, match=r"shop at 127\.0\.0\.1:9"):
        source.lock_next(1, LONG, MINUTE)
    source.close()


@pytest.mark.parametrize("wrong", [None, 5, "host=a=b c"])
def test_what_is_no_database_is_refused(wrong):
    with pytest.raises(BadOption, match=r"PostgreSQL|PostgresSource"):
        PostgresSource(wrong, "orders")


@pytest.mark.parametrize("wrong", ["", None, "shop.", "x" * 64])
def test_what_is_no_table_is_refused(wrong):
    with pytest.raises(BadOption, match="not a name"):
        PostgresSource("postgresql://h/d", wrong)
