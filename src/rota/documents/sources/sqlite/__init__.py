"""Runs documents that are rows of a SQLite table."""

from __future__ import annotations

from rota.documents.sources.sqlite.source import SqliteSource

__all__ = ["SqliteSource"]
