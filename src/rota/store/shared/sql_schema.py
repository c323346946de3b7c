"""What the table `meta` of a store says: the schema version, and how much was added to it since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Collection

    from rota.store.shared.sql import Tables


def current_version(tx: Tables, tables: Collection[str], namespace: str, prefix: str, known: int) -> int:
    """The schema version that the namespace has; 0 for none. `prefix` stands in front of the names of its tables."""
    if f"{prefix}meta" not in tables:
        if f"{prefix}job" in tables:
            raise _foreign(namespace, f"{prefix}job")
        return 0
    stored = _meta(tx, "version")
    if not stored.isdecimal():
        raise _foreign(namespace, f"{prefix}meta")
    version = int(stored)
    if version > known:
        raise SchemaMismatch(
            f"the namespace {namespace} has schema version {version}, this Rota knows up to {known}; "
            "install the newer Rota that made it, or use another namespace"
        )
    return version


def current_additions(tx: Tables) -> int:
    """How many additions to the version are recorded."""
    return int(_meta(tx, "additions"))


def _meta(tx: Tables, name: str) -> str:
    rows = tx.rows("SELECT value FROM {ns}.meta WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else "0"


def _foreign(namespace: str, table: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"the namespace {namespace} has a table {table} that Rota did not make; choose another namespace"
    )
