"""The project, and apps on the databases that it may have."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.db import connections
from django.test import override_settings

from rota.testing.servers.postgres import drop_schema, shared_url
from with_django.project import add_database, on_postgres, set_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota import App

set_up()


@pytest.fixture(params=["default", "postgres"])
def alias(request) -> str:
    if request.param == "postgres":
        add_database("postgres", **on_postgres(shared_url()))
    return request.param


@pytest.fixture
def shop_app(alias) -> Iterator[App]:
    """An app of the project's own kind, in a namespace of its own."""
    from rota.django.current import make_app  # noqa: PLC0415 - Django must be set up

    namespace = f"t{uuid4().hex[:12]}"
    with override_settings(ROTA={"database": alias, "namespace": namespace}):
        app = make_app()
    yield app
    app.close()
    connections.close_all()
    if alias == "postgres":
        drop_schema(namespace)
