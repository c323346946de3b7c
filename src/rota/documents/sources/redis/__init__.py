"""Runs documents that are hashes of a Redis server, with a sorted set as their index."""

from __future__ import annotations

from rota.documents.sources.redis.source import RedisSource

__all__ = ["RedisSource"]
