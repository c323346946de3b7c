"""Makes any collection or table a queue: its documents carry four fields, and become jobs where they are."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rota.documents.contract import DocumentFacts, Finding, Source
from rota.documents.fields import Fields
from rota.documents.queue import DocumentQueue

if TYPE_CHECKING:
    from rota.documents.sources.memory import MemorySource
    from rota.documents.sources.mongo import MongoSource
    from rota.documents.sources.postgres import PostgresSource
    from rota.documents.sources.redis import RedisSource
    from rota.documents.sources.sqlite import SqliteSource

__all__ = [
    "DocumentFacts",
    "DocumentQueue",
    "Fields",
    "Finding",
    "MemorySource",
    "MongoSource",
    "PostgresSource",
    "RedisSource",
    "Source",
    "SqliteSource",
]

_KINDS = {
    "MemorySource": "memory",
    "MongoSource": "mongo",
    "PostgresSource": "postgres",
    "RedisSource": "redis",
    "SqliteSource": "sqlite",
}


def __getattr__(name: str) -> object:
    """Sources are loaded when they are asked for: each needs the driver of its server."""
    if name not in _KINDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"rota.documents.sources.{_KINDS[name]}"), name)
    except ModuleNotFoundError as err:
        if (err.name or "").startswith("rota"):
            raise
        raise ImportError(f'{name} needs a driver that is not installed: pip install "rota[{_KINDS[name]}]"') from err
