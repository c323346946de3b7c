"""What is particular to rows of SQLite: forms of times, JSON, names, ids, connections."""

from __future__ import annotations

import sqlite3
import time
from datetime import UTC, datetime, timedelta

import pytest

from rota.documents import DocumentQueue, Fields, SqliteSource
from rota.errors import BadOption, StoreError, StoreUnavailable
from rota.testing.document_suite.stage import LONG, MINUTE, wait_for

COLUMNS = "id PRIMARY KEY, sleepUntil, interval, repeatUntil, autoRemove, lockedUntil, lockedBy, status"
KINDS = pytest.mark.parametrize("fields", [Fields(), Fields.four()], ids=["lock-fields", "four-fields"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


@pytest.fixture
def owner(path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"CREATE TABLE orders ({COLUMNS})")
    yield connection
    connection.close()


def ago(seconds, form="%Y-%m-%d %H:%M:%S"):
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime(form)


def run_all(source, **options):
    seen = []
    with DocumentQueue(source, lambda one: seen.append(one["id"]), **options) as queue:
        wait_for(lambda: queue.is_idle)
    source.close()
    return seen


@KINDS
def test_a_time_keeps_the_form_in_which_its_owner_writes(owner, path, fields):
    owner.execute("INSERT INTO orders (id, sleepUntil, interval) VALUES (1, datetime('now', '-1 hour'), '@yearly')")
    owner.execute("INSERT INTO orders (id, sleepUntil, interval) VALUES (2, ?, '@yearly')", (ago(9, "%FT%TZ"),))
    assert run_all(SqliteSource(path, "orders", fields=fields)) == [1, 2]
    year = datetime.now(UTC).year + 1
    times = owner.execute("SELECT sleepUntil FROM orders ORDER BY id").fetchall()
    assert times == [(f"{year}-01-01 00:00:00",), (f"{year}-01-01T00:00:00Z",)]


@KINDS
@pytest.mark.parametrize(("times", "factor"), [("seconds", 1), ("milliseconds", 1000)])
def test_times_may_be_numbers(owner, path, fields, times, factor):
    now = int(time.time())
    rows = [(1, (now - 9) * factor, "@yearly"), (2, (now + 999) * factor, None), (3, (now - 5.5) * factor, None)]
    rows.append((4, "2026-01-31 09:00:00", None))
    owner.executemany("INSERT INTO orders (id, sleepUntil, interval) VALUES (?, ?, ?)", rows)
    source = SqliteSource(path, "orders", fields=fields, times=times)
    source.prepare()
    (finding,) = source.check()
    assert "Write a number of" in finding.message
    assert run_all(source) == [1, 3]
    ((after,),) = owner.execute("SELECT sleepUntil FROM orders WHERE id = 1")
    assert isinstance(after, int)
    assert datetime.fromtimestamp(after / factor, UTC).strftime("%m-%d %T") == "01-01 00:00:00"


@pytest.mark.parametrize("wrong", ["now", "2026-01-31", 2461000.5, 1769850000, "0000-01-01 00:00:00"])
def test_what_is_no_time_is_told_and_does_not_keep_its_owner_from_writing_it(owner, path, wrong):
    source = SqliteSource(path, "orders")
    source.prepare()
    owner.execute("INSERT INTO orders (id, sleepUntil) VALUES ('odd', ?)", (wrong,))
    owner.execute("INSERT INTO orders (id, sleepUntil) VALUES ('good', ?)", (ago(5),))
    (finding,) = source.check()
    assert finding.kind == "not-a-time"
    assert repr(wrong) in finding.message
    assert run_all(source) == ["good"]


@KINDS
def test_rows_whose_json_is_broken_or_a_list_do_not_stop_the_others(owner, path, fields):
    deep = {
        "sleep_until": "data.a.at",
        "interval": "data.a.every",
        "repeat_until": "data.end",
        "auto_remove": "data.gone",
    }
    chosen = (
        Fields(**deep, locked_until="lockedUntil", locked_by="lockedBy") if fields.has_lock else Fields.four(**deep)
    )
    owner.execute("ALTER TABLE orders ADD COLUMN data TEXT")
    rows = [(1, "{broken"), (2, f'[{{"at": "{ago(9)}"}}]'), (3, f'{{"a": {{"at": "{ago(9)}"}}, "b": 5}}'), (4, None)]
    owner.executemany("INSERT INTO orders (id, data) VALUES (?, ?)", rows)
    source = SqliteSource(path, "orders", fields=chosen)
    source.prepare()
    (finding,) = source.check()
    assert (finding.kind, "data is a list or a plain value in 2" in finding.message) == ("path-through-list", True)
    assert run_all(source) == [3]
    assert owner.execute("SELECT data FROM orders WHERE id = 3").fetchone() == ('{"a":{"at":null},"b":5}',)


@KINDS
def test_ids_of_any_type(owner, path, fields):
    ids = [7, "7", 1.5, b"7", "it's", 2**60, ""]
    owner.executemany("INSERT INTO orders (id, sleepUntil) VALUES (?, ?)", [(one, ago(9)) for one in ids])
    seen = run_all(SqliteSource(path, "orders", fields=fields), concurrency=3)
    assert sorted(map(repr, seen)) == sorted(map(repr, ids))
    assert owner.execute("SELECT count(*) FROM orders WHERE sleepUntil IS NULL").fetchone() == (len(ids),)
    assert owner.execute("SELECT count(*) FROM rota_documents").fetchone() == (0,)


@KINDS
def test_names_are_data(owner, path, fields):
    owner.execute('CREATE TABLE "or""ders; --%s" ("the id" PRIMARY KEY, "at ""it""", e, r, a, u, b)')
    owner.execute('INSERT INTO "or""ders; --%s" VALUES (1, ?, NULL, NULL, NULL, NULL, NULL)', (ago(9),))
    four = {"sleep_until": 'at "it"', "interval": "e", "repeat_until": "r", "auto_remove": "a"}
    chosen = Fields(**four, locked_until="u", locked_by="b") if fields.has_lock else Fields.four(**four)
    source = SqliteSource(path, 'or"ders; --%s', fields=chosen, key="the id")
    assert len(source.prepare()) == 2
    assert source.check() == []
    (locked,) = source.lock_next(1, LONG, MINUTE).documents
    assert locked.document["the id"] == 1
    source.close()


def test_what_a_table_lacks_is_told_with_the_command_that_mends_it(owner, path):
    owner.execute("CREATE TABLE plain (id, sleepUntil, interval, repeatUntil, autoRemove, lockedUntil)")
    source = SqliteSource(path, "plain")
    (finding,) = source.check()
    assert (finding.kind, finding.command) == ("no-column", 'ALTER TABLE "plain" ADD COLUMN "lockedBy"')
    with pytest.raises(StoreError, match="no column lockedBy"):
        source.lock_next(1, LONG, MINUTE)
    owner.execute(finding.command)
    (finding,) = source.check()
    assert finding.kind == "key-not-unique"
    owner.execute(finding.command)
    (finding,) = source.check()
    assert finding.kind == "no-index"
    owner.execute(finding.command)
    assert source.check() == []
    assert source.lock_next(1, LONG, MINUTE).documents == []
    source.close()


def test_names_of_columns_are_the_same_in_any_case(owner, path):
    columns = "ID PRIMARY KEY, sleepuntil, INTERVAL, repeatuntil, autoremove, lockeduntil, lockedby"
    owner.execute(f"CREATE TABLE plain ({columns})")
    owner.execute("INSERT INTO plain (id, sleepuntil) VALUES (1, ?)", (ago(9),))
    source = SqliteSource(path, "plain")
    source.prepare()
    assert source.check() == []
    assert [one.id for one in source.lock_next(5, LONG, MINUTE).documents] == [1]
    source.close()


@pytest.mark.usefixtures("owner")
def test_a_table_that_does_not_exist_is_told(path):
    source = SqliteSource(path, "nothing")
    assert [one.kind for one in source.check()] == ["no-table"]
    with pytest.raises(StoreError, match="nothing does not exist"):
        source.lock_next(1, LONG, MINUTE)
    source.close()


def test_a_file_that_is_missing_is_not_made(tmp_path):
    with pytest.raises(StoreUnavailable, match="unable to open"):
        SqliteSource(tmp_path / "none.db", "orders").lock_next(1, LONG, MINUTE)
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("wrong", [":memory:", "", None, 5])
def test_what_is_no_file_is_refused(wrong):
    with pytest.raises(BadOption, match="SqliteSource"):
        SqliteSource(wrong, "orders")


@pytest.mark.parametrize("condition", [{}, "", 5, ("a", "b", "c")])
def test_a_condition_is_a_mapping_or_sql(path, condition):
    if condition == {}:
        SqliteSource(path, "orders", condition=condition)
        return
    with pytest.raises(BadOption, match="condition"):
        SqliteSource(path, "orders", condition=condition)


@pytest.mark.parametrize("condition", [{"status": None}, "status IS NULL -- none", ("status IS ?", [None])])
def test_a_condition_chooses_rows(owner, path, condition):
    owner.execute("INSERT INTO orders (id, sleepUntil) VALUES (1, ?)", (ago(9),))
    owner.execute("INSERT INTO orders (id, sleepUntil, status) VALUES (2, ?, 'open')", (ago(9),))
    source = SqliteSource(path, "orders", condition=condition)
    source.prepare()
    assert source.check() == []
    assert run_all(source) == [1]


@pytest.mark.filterwarnings("ignore:The default timestamp converter:DeprecationWarning")  # of Python 3.12: the owner's
def test_a_connection_of_the_owner_may_have_its_own_ways(owner, path):
    owner.execute("CREATE TABLE typed (id INTEGER PRIMARY KEY, sleepUntil TIMESTAMP, interval, repeatUntil TIMESTAMP, "
                  "autoRemove, lockedUntil TIMESTAMP, lockedBy)")  # fmt: skip
    owner.execute("INSERT INTO typed (id, sleepUntil) VALUES (1, ?)", (ago(9),))

    def connect():
        connection = sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES)
        connection.row_factory = sqlite3.Row
        return connection

    assert run_all(SqliteSource(connect, "typed")) == [1]
    with pytest.raises(BadOption, match=r"not a sqlite3\.Connection"):
        SqliteSource(lambda: path, "typed").lock_next(1, LONG, MINUTE)


def test_an_idle_look_reads_no_rows_that_are_not_due(owner, path):
    source = SqliteSource(path, "orders", condition={"status": "open"})
    source.prepare()
    rows = [(number, ago(-9999), "open") for number in range(300)]
    owner.executemany("INSERT INTO orders (id, sleepUntil, status) VALUES (?, ?, ?)", rows)
    now = source.now()
    sql, params = source._queries.oldest(now, now + 1, 5)
    plan = [row[3] for row in owner.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
    assert len(plan) == 1
    assert "SEARCH" in plan[0]
    assert "status=? AND <expr>" in plan[0]
    source.close()


@KINDS
def test_a_row_that_refuses_its_end_does_not_keep_others_from_being_written(path, fields):
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute(f"CREATE TABLE orders ({COLUMNS}, CHECK (id <> 'bad' OR sleepUntil IS NOT NULL))")
    owner.executemany("INSERT INTO orders (id, sleepUntil) VALUES (?, ?)", [(one, ago(9)) for one in ("a", "bad", "c")])
    source, errors = SqliteSource(path, "orders", fields=fields), []

    def done():
        return [one for (one,) in owner.execute("SELECT id FROM orders WHERE sleepUntil IS NULL ORDER BY id")]

    queue = DocumentQueue(source, lambda _: None, concurrency=3, lock_for="1s", on_error=errors.append)
    with queue:
        wait_for(lambda: done() == ["a", "c"])
        owner.execute("INSERT INTO orders (id, sleepUntil) VALUES ('d', ?)", (ago(9),))
        wait_for(lambda: done() == ["a", "c", "d"])
        owner.execute("DELETE FROM orders WHERE id = 'bad'")
    assert "CHECK" in str(errors[0])
    source.close()
    owner.close()


@KINDS
@pytest.mark.parametrize("oddity", [("x", None), (None, b"\xff")], ids=["behind-a-nul", "not-utf8"])
def test_a_text_that_no_program_should_write_does_not_stop_the_rows_behind_it(owner, path, fields, oddity):
    owner.executemany("INSERT INTO orders (id, sleepUntil) VALUES (?, ?)", [(1, ago(99)), (2, ago(9))])
    change = (
        "UPDATE orders SET sleepUntil = sleepUntil || coalesce(char(0) || ?, ''), status = CAST(? AS TEXT) WHERE id = 1"
    )
    owner.execute(change, oddity)
    assert run_all(SqliteSource(path, "orders", fields=fields)) == [1, 2]
