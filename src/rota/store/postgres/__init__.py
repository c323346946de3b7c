"""Defines the PostgreSQL store: a schema of its own in your database, shared by any number of hosts."""

from __future__ import annotations

from rota.store.postgres.store import PostgresStore, from_url

__all__ = ["PostgresStore", "from_url"]
