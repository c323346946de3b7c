"""Databases of a shop, and every kind of transaction that may hold a sale and its job."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aiosqlite
import psycopg
import sqlalchemy
import sqlmodel
from django.db import connections
from django.db import transaction as django_transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlmodel.ext.asyncio.session import AsyncSession as SQLModelAsyncSession

from rota import App
from rota.testing.servers.postgres import shared_url
from with_django.project import add_database, on_postgres, set_up

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


class Shop:
    """A database with a table of sales, where an app keeps its jobs too."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.namespace = f"t{uuid4().hex[:12]}"
        self.table = f"sale_{self.namespace}"
        self.url = f"sqlite:///{folder / 'shop.db'}" if kind == "sqlite" else shared_url()
        self.path = str(folder / "shop.db")
        with closing(self.connect()) as connection:
            connection.execute(f"CREATE TABLE {self.table} (id TEXT)")
            connection.commit()
        self.insert = f"INSERT INTO {self.table} VALUES ('a')"  # noqa: S608 - the test's own
        self.app = self.another_app()

    def another_app(self) -> App:
        app = App(self.url, namespace=self.namespace)
        app.task(len, name="count")
        return app

    @property
    def task(self) -> Any:
        return self.app._wiring.registry.get("count")

    def connect(self, **options: Any) -> Any:
        return sqlite3.connect(self.path, **options) if self.kind == "sqlite" else psycopg.connect(self.url, **options)

    def engine(self, **options: Any) -> sqlalchemy.Engine:
        return sqlalchemy.create_engine(self.alchemy_url("sqlite"), **options)

    def alchemy_url(self, driver: str) -> str:
        if self.kind == "sqlite":
            return self.url.replace("sqlite://", f"{driver}://")
        return self.url.replace("postgresql://", "postgresql+psycopg://")

    def sales(self) -> int:
        with closing(self.connect()) as connection:
            (number,) = connection.execute(f"SELECT count(*) FROM {self.table}").fetchone()  # noqa: S608
            return number

    def jobs(self) -> list[Any]:
        return self.another_app_jobs(self.app)

    def another_app_jobs(self, app: App) -> list[Any]:
        return app.jobs.list().items

    def close(self) -> None:
        self.app.close()
        if self.kind == "postgres":
            with closing(psycopg.connect(self.url, autocommit=True)) as connection:
                connection.execute(f"DROP TABLE {self.table}")
                connection.execute(f'DROP SCHEMA IF EXISTS "{self.namespace}" CASCADE')


class Held:
    """A transaction of some library, with a sale in it."""

    def __init__(self, tx: Any, commit: Any, rollback: Any) -> None:
        self.tx = tx
        self.commit = commit
        self.rollback = rollback


@contextmanager
def plain(shop: Shop) -> Iterator[Held]:
    with closing(shop.connect()) as connection:
        connection.execute(shop.insert)
        yield Held(connection, connection.commit, connection.rollback)


@contextmanager
def alchemy_session(shop: Shop, kind: Any = Session) -> Iterator[Held]:
    engine = shop.engine()
    with kind(engine) as session:
        session.execute(sqlalchemy.text(shop.insert))
        yield Held(session, session.commit, session.rollback)
    engine.dispose()


@contextmanager
def sqlmodel_session(shop: Shop) -> Iterator[Held]:
    engine = shop.engine()
    with sqlmodel.Session(engine) as session:
        session.connection().exec_driver_sql(shop.insert)
        yield Held(session, session.commit, session.rollback)
    engine.dispose()


@contextmanager
def alchemy_connection(shop: Shop) -> Iterator[Held]:
    """The job comes first: the connection has no transaction yet, and its commit must not be for nothing."""
    engine = shop.engine()
    with engine.connect() as connection:

        def commit() -> None:
            connection.exec_driver_sql(shop.insert)
            connection.commit()

        yield Held(connection, commit, connection.rollback)
    engine.dispose()


@contextmanager
def in_django(shop: Shop) -> Iterator[Held]:
    connection = django_connection(shop)
    atomic = django_transaction.atomic(using=shop.namespace)
    atomic.__enter__()
    with connection.cursor() as cursor:
        cursor.execute(shop.insert)

    def rollback() -> None:
        django_transaction.set_rollback(True, using=shop.namespace)
        atomic.__exit__(None, None, None)

    yield Held(connection, lambda: atomic.__exit__(None, None, None), rollback)
    connection.close()


def django_connection(shop: Shop) -> Any:
    set_up()
    options = {"ENGINE": "django.db.backends.sqlite3", "NAME": shop.path}
    add_database(shop.namespace, **(options if shop.kind == "sqlite" else on_postgres(shop.url)))
    return connections[shop.namespace]


SYNC = {
    "driver": plain,
    "sqlalchemy session": alchemy_session,
    "sqlmodel session": sqlmodel_session,
    "sqlalchemy connection": alchemy_connection,
    "django": in_django,
}


@asynccontextmanager
async def async_driver(shop: Shop) -> AsyncIterator[Held]:
    opening = aiosqlite.connect(shop.path) if shop.kind == "sqlite" else psycopg.AsyncConnection.connect(shop.url)
    connection = await opening
    try:
        await connection.execute(shop.insert)
        yield Held(connection, connection.commit, connection.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def async_session(shop: Shop, kind: Any = AsyncSession) -> AsyncIterator[Held]:
    engine = create_async_engine(shop.alchemy_url("sqlite+aiosqlite"))
    async with kind(engine) as session:
        await (await session.connection()).exec_driver_sql(shop.insert)
        yield Held(session, session.commit, session.rollback)
    await engine.dispose()


@asynccontextmanager
async def async_sqlmodel(shop: Shop) -> AsyncIterator[Held]:
    async with async_session(shop, SQLModelAsyncSession) as held:
        yield held


@asynccontextmanager
async def async_connection(shop: Shop) -> AsyncIterator[Held]:
    """The job comes first here, too."""
    engine = create_async_engine(shop.alchemy_url("sqlite+aiosqlite"))
    async with engine.connect() as connection:

        async def commit() -> None:
            await connection.exec_driver_sql(shop.insert)
            await connection.commit()

        yield Held(connection, commit, connection.rollback)
    await engine.dispose()


ASYNC = {
    "driver": async_driver,
    "sqlalchemy session": async_session,
    "sqlmodel session": async_sqlmodel,
    "sqlalchemy connection": async_connection,
}
