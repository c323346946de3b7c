"""Defines the SQLite store: one file, several processes on one host, nothing to install."""

from __future__ import annotations

from rota.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
