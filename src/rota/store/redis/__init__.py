"""The Redis store: for many hosts, on Redis or Valkey. One script per transition, all keys in one slot."""

from __future__ import annotations

from rota.store.redis.store import RedisStore

__all__ = ["RedisStore", "from_url"]


def from_url(url: str, *, namespace: str) -> RedisStore:
    """The store that a URL names, not opened yet."""
    return RedisStore(url, namespace=namespace)
