"""Runs documents of a MongoDB collection, on a standalone server, a replica set or a sharded cluster."""

from __future__ import annotations

from rota.documents.sources.mongo.source import MongoSource

__all__ = ["MongoSource"]
