"""The PostgreSQL store: a schema of its own in a database that you have, shared by any number of hosts."""

from __future__ import annotations

from rota.store.postgres.store import PostgresStore, from_url

__all__ = ["PostgresStore", "from_url"]
