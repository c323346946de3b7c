"""Runs documents that are rows of a PostgreSQL table."""

from __future__ import annotations

from rota.documents.sources.postgres.source import PostgresSource

__all__ = ["PostgresSource"]
