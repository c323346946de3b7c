"""Defines the MongoDB store: one database of a standalone server, a replica set or a cluster; any number of hosts."""

from __future__ import annotations

from rota.store.mongo.store import MongoStore

__all__ = ["MongoStore", "from_url"]


def from_url(url: str, *, namespace: str) -> MongoStore:
    """The store that a mongodb:// URL names; it is not opened yet."""
    return MongoStore(url, namespace=namespace)
