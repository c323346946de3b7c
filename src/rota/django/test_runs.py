"""Keeps the jobs of a test run out of the project's own database.

Django's test runner and pytest-django rename the databases of a project after its app was made, and drop them at the
end. Until a test says otherwise, the jobs of a test run are then kept in memory: a store in the database of the run
would hold connections that keep the server from dropping it, and an SQLite database in memory can hold no store.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from rota.app import App, internals
from rota.django.databases import is_in_memory, store_url_of
from rota.store.urls import store_from_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rota.store.contract import Store


class StoreOfTestRun:
    """Says which store an app has while its database is that of a test run."""

    def __init__(self, databases: Mapping[str, Any], alias: str) -> None:
        self._databases = databases
        self._alias = alias
        self._name = self._current_name()
        self._store: Store | None = None

    def find(self) -> Store | None:
        """The store of a test run; None outside of one."""
        if not hasattr(mail, "outbox") or self._current_name() == self._name:  # Django makes the first for tests alone
            return None
        if self._store is None:
            from rota.testing.uncommitted_store import UncommittedStore  # noqa: PLC0415 - only tests pay for it

            self._store = UncommittedStore()
        return self._store

    def _current_name(self) -> str:
        return str(self._databases[self._alias].get("NAME") or "")


@contextmanager
def store_in_database(app: App, alias: str | None) -> Iterator[None]:
    """Keep the jobs of an app in the database of the test run, in a namespace that is dropped at the end."""
    if alias is None:
        raise ImproperlyConfigured("rota_on_database needs a store in a database of Django: ROTA names another store")
    database = settings.DATABASES[alias]
    if "sqlite" in database["ENGINE"] and is_in_memory(database):
        raise ImproperlyConfigured(
            f"rota_on_database needs a test database in a file, and that of {alias!r} is in memory; set "
            f"DATABASES[{alias!r}]['TEST'] = {{'NAME': 'test.db'}}"
        )
    namespace = f"test_{uuid4().hex[:12]}"
    before = internals(app).store.use(store_from_url(store_url_of(settings.DATABASES, alias), namespace=namespace))
    try:
        yield
    finally:
        app.close()
        internals(app).store.use(before)
        _drop(alias, namespace)


def _drop(alias: str, namespace: str) -> None:
    connection = connections[alias]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"DROP SCHEMA IF EXISTS {namespace} CASCADE")
            return
        for table in connection.introspection.table_names(cursor):
            if table.startswith(f"{namespace}_"):
                cursor.execute(f"DROP TABLE {table}")
