"""Databases of their own for sites whose tables have fixed names."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg

from rota.testing.servers.postgres import shared_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/shop.db"
        return
    name = f"t{uuid4().hex[:12]}"
    with psycopg.connect(shared_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield re.sub(r"/\w+$", f"/{name}", shared_url())
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
