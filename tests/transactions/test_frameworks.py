"""A job in a caller's transaction exists if and only if that commits, whichever library holds it, on both databases."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing

import aiosqlite
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from rota import App, BadOption, Refused, RotaError
from rota.store.contract import LARGEST_BATCH
from transactions.shops import ASYNC, SYNC, Shop, async_driver, async_session, django_connection, plain

KINDS = ["sqlite", "postgres"]


@pytest.fixture(params=KINDS)
def shop(request, tmp_path):
    """Its app has not opened its store: the first job in a transaction must work without that."""
    shop = Shop(request.param, tmp_path)
    yield shop
    shop.close()


@pytest.mark.parametrize("way", SYNC)
def test_commit_brings_one_job_and_rollback_none(shop, way):
    with SYNC[way](shop) as held:
        shop.task.using(tx=held.tx).enqueue("dropped")
        held.rollback()
    assert (shop.sales(), shop.jobs()) == (0, [])
    shop.app.close()
    with SYNC[way](shop) as held:
        job = shop.task.using(tx=held.tx).enqueue("kept")
        held.commit()
    assert shop.sales() == 1
    assert [(one.id, one.state) for one in shop.jobs()] == [(job.id, "queued")]
    assert shop.app.open().recount() == {}


@pytest.mark.parametrize("way", ASYNC)
def test_commit_brings_one_job_and_rollback_none_in_coroutines(shop, way):
    async def enqueue(word, end):
        async with ASYNC[way](shop) as held:
            job = await shop.task.using(tx=held.tx).aenqueue(word)
            await getattr(held, end)()
            return job

    asyncio.run(enqueue("dropped", "rollback"))
    assert (shop.sales(), shop.jobs()) == (0, [])
    shop.app.close()
    job = asyncio.run(enqueue("kept", "commit"))
    assert shop.sales() == 1
    assert [(one.id, one.state) for one in shop.jobs()] == [(job.id, "queued")]
    assert shop.app.open().recount() == {}


def test_many_jobs_with_keys_and_delays_come_in_one_async_transaction(shop):
    async def enqueue():
        async with async_session(shop) as held:
            many = [shop.task.using(tx=held.tx).job("a") for _ in range(60)]
            keyed = [shop.task.using(tx=held.tx, key="k", delay="1h").job("b") for _ in range(2)]
            jobs = await shop.app.aio.enqueue_many([*many, *keyed])
            await held.commit()
            return jobs

    jobs = asyncio.run(enqueue())
    assert (jobs[-1].id, jobs[-1].existed) == (jobs[-2].id, True)
    assert len(shop.app.jobs.list(limit=100).items) == 61
    assert shop.app.open().recount() == {}


@pytest.mark.parametrize("way", ASYNC)
def test_coroutines_that_share_a_transaction_take_turns(shop, way):
    """Their statements once mixed: on SQLite, a job of a rolled back transaction was kept."""

    async def enqueue():
        for end in ("rollback", "commit"):
            async with ASYNC[way](shop) as held:
                await asyncio.gather(*(shop.task.using(tx=held.tx).aenqueue(end) for _ in range(6)))
                await getattr(held, end)()

    shop.app.open()
    asyncio.run(enqueue())
    assert [job.args for job in shop.jobs()] == [["commit"]] * 6
    assert shop.app.open().recount() == {}


def refuse_queue(shop, name):
    """Let the database refuse the jobs of one queue."""
    with closing(shop.connect()) as connection:
        if shop.kind == "sqlite":
            connection.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON {shop.namespace}_job WHEN NEW.queue = '{name}' "
                "BEGIN SELECT RAISE(FAIL, 'no more room'); END"
            )
        else:
            body = f"BEGIN IF NEW.queue = '{name}' THEN RAISE 'no more room'; END IF; RETURN NEW; END"
            schema = f'"{shop.namespace}"'
            connection.execute(f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
            connection.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.job FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
            )
        connection.commit()


def test_many_jobs_of_which_one_is_refused_leave_none_and_the_transaction_goes_on(shop):
    shop.app.open()
    refuse_queue(shop, "full")
    with plain(shop) as held:
        kept = shop.task.using(tx=held.tx).enqueue("kept")
        many = [shop.task.using(tx=held.tx).job("a") for _ in range(LARGEST_BATCH + 1)]
        with pytest.raises(RotaError, match="no more room"):
            shop.app.enqueue_many([*many, shop.task.using(tx=held.tx, queue="full").job("b")])
        held.tx.execute(shop.insert)
        held.commit()
    assert shop.sales() == 2
    assert [job.id for job in shop.jobs()] == [kept.id]
    assert shop.app.open().recount() == {}


def test_the_same_in_a_coroutine(shop):
    shop.app.open()
    refuse_queue(shop, "full")

    async def enqueue():
        async with async_driver(shop) as held:
            many = [shop.task.using(tx=held.tx, queue=queue).job("a") for queue in ("default", "full")]
            with pytest.raises(RotaError, match="no more room"):
                await shop.app.aio.enqueue_many(many)
            await held.tx.execute(shop.insert)
            await held.commit()

    asyncio.run(enqueue())
    assert (shop.sales(), shop.jobs()) == (2, [])


def test_a_coroutine_may_use_a_connection_of_its_own_thread(shop):
    async def enqueue():
        with plain(shop) as held:
            await shop.task.using(tx=held.tx).aenqueue("a")
            held.commit()

    asyncio.run(enqueue())
    assert len(shop.jobs()) == 1


def test_a_listener_is_woken_by_the_commit(shop):
    """No poll finds the job: the listener alone waits here."""
    store = shop.app.open()
    listener = store.listen("jobs")
    try:
        with plain(shop) as held:
            shop.task.using(tx=held.tx).enqueue("a")
            while listener.wait(0.3):  # a notice that a commit is expected, at most
                pass
            held.commit()
            assert listener.wait(20)
    finally:
        listener.close()


def test_a_listener_that_comes_after_the_job_was_written_is_woken_by_the_commit(shop):
    store = shop.app.open()
    with plain(shop) as held:
        shop.task.using(tx=held.tx).enqueue("a")
        listener = store.listen("jobs")
        while listener.wait(0.3):
            pass
        held.commit()
        assert listener.wait(20)
        listener.close()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_first_job_needs_no_open_store_and_the_next_call_opens_it(shop, end):
    with plain(shop) as held:
        shop.task.using(tx=held.tx).enqueue("a")
        shop.task.using(tx=held.tx).enqueue("b")
        getattr(held, end)()
    shop.task.enqueue("c")
    assert len(shop.jobs()) == (3 if end == "commit" else 1)


# What is refused.


def refused(shop, tx, words):
    with pytest.raises(BadOption, match=words):
        shop.task.using(tx=tx).enqueue("a")
    assert shop.jobs() == []


def test_a_closed_connection_is_refused(shop):
    connection = shop.connect()
    connection.close()
    refused(shop, connection, "closed")


def test_a_closed_connection_of_sqlalchemy_is_refused(shop):
    engine = shop.engine()
    with engine.connect() as connection:
        pass
    refused(shop, connection, "This Connection is closed")
    session = Session(engine, close_resets_only=False)
    session.close()
    refused(shop, session, "permanently closed")
    engine.dispose()


def test_a_transaction_of_sqlalchemy_that_was_rolled_back_is_refused(shop):
    engine = shop.engine()
    with engine.connect() as connection, connection.begin() as begun:
        begun.rollback()
        refused(shop, connection, "closed transaction")
    engine.dispose()


def test_a_session_whose_flush_failed_is_refused(shop):
    engine = shop.engine()
    meta = sqlalchemy.orm.registry()
    number = sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True)
    table = sqlalchemy.Table(f"t_{shop.namespace}", meta.metadata, number)
    row = type("Row", (), {})
    meta.map_imperatively(row, table)
    with Session(engine) as session:
        session.add(row())
        with pytest.raises(sqlalchemy.exc.DBAPIError):
            session.flush()  # there is no such table
        with pytest.raises(BadOption, match=r"rolled back|failed already"):
            shop.task.using(tx=session).enqueue("a")
        session.rollback()
    engine.dispose()
    assert shop.jobs() == []


def test_an_engine_in_autocommit_is_refused(shop):
    engine = shop.engine(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        refused(shop, connection, "in autocommit without a transaction")
    engine.dispose()


class Autocommit(sqlite3.Connection):
    """What sqlite3.connect(autocommit=True) gives since Python 3.12: commit() does nothing."""

    autocommit = True

    def commit(self):
        pass


def test_an_aiosqlite_connection_in_autocommit_is_refused_until_it_begins(tmp_path):
    shop = Shop("sqlite", tmp_path)
    options = {"autocommit": True} if sys.version_info >= (3, 12) else {"factory": Autocommit}

    async def enqueue():
        async with aiosqlite.connect(shop.path, **options) as connection:
            with pytest.raises(BadOption, match="in autocommit without a transaction"):
                await shop.task.using(tx=connection).aenqueue("a")
            assert not connection.in_transaction
            await connection.execute("BEGIN")
            await shop.task.using(tx=connection).aenqueue("b")
            await connection.execute("COMMIT")

    asyncio.run(enqueue())
    assert [job.args for job in shop.jobs()] == [["b"]]
    shop.close()


def test_djangos_autocommit_and_a_block_that_has_failed_are_refused(shop):
    connection = django_connection(shop)
    refused(shop, connection, "transaction.atomic")
    with SYNC["django"](shop) as held:
        held.tx.needs_rollback = True
        with pytest.raises(BadOption, match="will be rolled back"):
            shop.task.using(tx=held.tx).enqueue("a")
        held.rollback()
    assert shop.jobs() == []


def test_another_file_or_database_is_refused(shop, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    if shop.kind == "sqlite":
        elsewhere = Shop("sqlite", other).connect()
    else:
        elsewhere = psycopg.connect(shop.url.rpartition("/")[0] + "/postgres")
    with closing(elsewhere):
        refused(shop, elsewhere, "one transaction needs one")


def test_a_database_of_another_kind_is_refused(shop, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    stranger = Shop("postgres" if shop.kind == "sqlite" else "sqlite", other)
    with plain(stranger) as held:
        refused(shop, held.tx, "on_commit")
        held.rollback()
    stranger.close()


def test_an_async_transaction_in_a_plain_call_is_refused(shop):
    async def enqueue():
        async with async_driver(shop) as held, async_session(shop):
            with pytest.raises(BadOption, match=r"await task\.using"):
                shop.task.using(tx=held.tx).enqueue("a")
            await held.rollback()

    if shop.kind == "postgres":
        asyncio.run(enqueue())
    else:
        engine = create_async_engine(shop.alchemy_url("sqlite+aiosqlite"))
        with pytest.raises(BadOption, match=r"await task\.using"):
            shop.task.using(tx=engine.connect()).enqueue("a")
    assert shop.jobs() == []


def test_stores_without_transactions_say_what_to_do():
    app = App("memory://")
    task = app.task(len, name="count")
    with pytest.raises(Refused, match="on_commit"):
        task.using(tx=object()).enqueue("abc")
    app.close()
