"""A job can be enqueued, and end, in the caller's own transaction: both happen with its effects, or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rota import App, BadOption, JobNotFound, LeaseLost, Refused, StoreUnavailable, current_job

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def app(path: Path):
    app = App(f"sqlite:///{path}")
    app.open()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sale (id TEXT)")
    yield app
    app.close()


@pytest.fixture
def connection(path: Path, app: App):  # noqa: ARG001 - the app makes the tables
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def sales(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [sale for (sale,) in connection.execute("SELECT id FROM sale ORDER BY id")]


def test_a_committed_transaction_brings_its_job(app: App, connection: sqlite3.Connection):
    task = app.task(len, name="count")
    connection.execute("INSERT INTO sale VALUES ('a')")
    job = task.using(tx=connection).enqueue("abc")
    for read in (job.refresh, lambda: job.result(timeout=1)):
        with pytest.raises(JobNotFound, match=r"part of a transaction .* not committed yet"):
            read()
    connection.commit()
    assert job.refresh().state == "queued"
    assert app.open().recount() == {}


def test_a_job_of_an_open_transaction_says_so_also_if_the_store_was_never_opened(tmp_path: Path):
    app = App(f"sqlite:///{tmp_path / 'new.db'}")
    task = app.task(len, name="count")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection, closing(app):
        job = task.using(tx=connection).enqueue("abc")
        with pytest.raises(StoreUnavailable, match=r"part of a transaction .* not be committed yet"):
            _ = job.state
        connection.commit()
        assert job.state == "queued"


def test_a_rolled_back_transaction_leaves_no_job(app: App, connection: sqlite3.Connection, path: Path):
    task = app.task(len, name="count")
    connection.execute("INSERT INTO sale VALUES ('a')")
    task.using(tx=connection).enqueue("abc")
    connection.rollback()
    assert app.jobs.list().items == []
    assert sales(path) == []
    assert app.open().recount() == {}


def test_a_connection_without_a_transaction_gets_one(app: App, connection: sqlite3.Connection):
    task = app.task(len, name="count")
    job = task.using(tx=connection).enqueue("abc")
    connection.rollback()
    with pytest.raises(JobNotFound):
        job.refresh()


def test_rows_and_text_that_the_caller_wants_otherwise_stay_so(app: App, connection: sqlite3.Connection):
    connection.row_factory = lambda _cursor, row: {"first": row[0]}
    connection.text_factory = bytes
    job = app.task(len, name="count").using(tx=connection, key="one").enqueue("a")
    assert app.task(len, name="count2").using(tx=connection, key="two").enqueue("a").id != job.id
    assert connection.execute("SELECT 'a'").fetchone() == {"first": b"a"}
    connection.commit()
    assert app.jobs.get(job.id).key == "one"


def test_a_connection_that_commits_each_statement_is_refused(app: App, path: Path):
    class Autocommit(sqlite3.Connection):
        autocommit = True  # what sqlite3.connect(autocommit=True) gives since Python 3.12

    with (
        closing(sqlite3.connect(path, factory=Autocommit)) as connection,
        pytest.raises(BadOption, match="in autocommit without a transaction"),
    ):
        app.task(len, name="count").using(tx=connection).enqueue("a")


def test_a_key_that_is_taken_answers_with_its_job(app: App, connection: sqlite3.Connection):
    task = app.task(len, name="count")
    first = task.using(key="k").enqueue("abc")
    second = task.using(key="k", tx=connection).enqueue("abc")
    connection.commit()
    assert (second.id, second.existed) == (first.id, True)


def test_a_connection_to_another_file_is_refused(app: App, tmp_path: Path):
    task = app.task(len, name="count")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, pytest.raises(BadOption, match="one file"):
        task.using(tx=other).enqueue("abc")


def test_something_that_is_no_connection_is_refused(app: App):
    task = app.task(len, name="count")
    with pytest.raises(BadOption, match="sqlite3 connection"):
        task.using(tx="BEGIN").enqueue("abc")


def test_a_store_without_transactions_says_so():
    app = App("memory://")
    task = app.task(len, name="count")
    with pytest.raises(Refused, match="no transactions"):
        task.using(tx=object()).enqueue("abc")


def test_requests_of_two_transactions_are_not_mixed(app: App, connection: sqlite3.Connection):
    task = app.task(len, name="count")
    with pytest.raises(BadOption, match="share one"):
        app.enqueue_many([task.job("a"), task.using(tx=connection).job("b")])


def test_a_job_ends_with_its_effects(app: App, path: Path):
    @app.task(name="sell")
    def sell(sale: str) -> str:
        with closing(sqlite3.connect(path)) as mine:
            mine.execute("INSERT INTO sale VALUES (?)", (sale,))
            current_job.finish_in(mine, "sold")
            mine.commit()
        return "sold"

    with app.running(scheduler=False):
        assert sell.enqueue("a").result("10s") == "sold"
    assert sales(path) == ["a"]
    assert [line.state for line in app.jobs.history(app.jobs.list().items[0].id)] == ["queued", "running", "succeeded"]
    assert app.open().recount() == {}


def test_a_job_that_fails_after_it_ended_with_its_effects_has_succeeded(app: App, path: Path):
    @app.task(name="sell", retries=3)
    def sell(sale: str) -> None:
        with closing(sqlite3.connect(path)) as mine:
            mine.execute("INSERT INTO sale VALUES (?)", (sale,))
            current_job.finish_in(mine)
            mine.commit()
        raise RuntimeError("too late to fail")

    with app.running(scheduler=False):
        sell.enqueue("a").result("10s")
    assert sales(path) == ["a"]


def test_effects_that_are_rolled_back_leave_the_job_to_be_tried_again(app: App, path: Path):
    @app.task(name="sell", retries=1, backoff="1s")
    def sell(sale: str) -> None:
        with closing(sqlite3.connect(path)) as mine:
            mine.execute("INSERT INTO sale VALUES (?)", (sale,))
            current_job.finish_in(mine)
            if current_job.attempt == 1:
                mine.rollback()
                raise RuntimeError("not yet")
            mine.commit()

    with app.running(scheduler=False):
        sell.enqueue("a").result("20s")
    assert sales(path) == ["a"]
    assert app.jobs.list().items[0].attempts == 2


def test_a_worker_that_lost_its_job_cannot_end_it(app: App, path: Path):
    seen: list[type[BaseException]] = []

    @app.task(name="sell")
    def sell() -> None:
        with closing(sqlite3.connect(path)) as thief:
            thief.execute("UPDATE rota_job SET lease_no = lease_no + 1")
            thief.commit()
        with closing(sqlite3.connect(path)) as mine:
            mine.execute("INSERT INTO sale VALUES ('a')")
            try:
                current_job.finish_in(mine)
            except LeaseLost as err:
                seen.append(type(err))
                mine.rollback()

    with app.running(scheduler=False) as node:
        sell.enqueue()
        while not seen:
            node.worker.is_idle.wait(0.05)
    assert seen == [LeaseLost]
    assert sales(path) == []
