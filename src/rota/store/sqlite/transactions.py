"""The caller's own transaction: whether a connection that is handed in may carry our writes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rota.errors import BadOption


def check_transaction(transaction: object, path: Path) -> sqlite3.Connection:
    """The caller's connection, with a transaction begun: it must be on the store's own file."""
    if not isinstance(transaction, sqlite3.Connection):
        raise BadOption(f"tx= takes a sqlite3 connection here, got {type(transaction).__name__}")
    files = [row[2] for row in transaction.execute("PRAGMA database_list") if row[1] == "main"]
    if not files or not files[0] or Path(files[0]).resolve() != path.resolve():
        shown = files[0] if files and files[0] else "a database in memory"
        raise BadOption(
            f"tx= is a connection to {shown}, but the jobs are kept in {path}: one transaction needs one file"
        )
    if not transaction.in_transaction:
        transaction.execute("BEGIN IMMEDIATE")  # a savepoint alone would commit when it is released
    return transaction
