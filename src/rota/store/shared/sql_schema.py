"""What the table `meta` of a store says: the schema version, and how much was added to it since."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from rota.store.shared.schema_version import check_known, foreign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rota.errors import SchemaMismatch
    from rota.store.shared.sql import Tables

_CREATED = re.compile(r"CREATE (?:OR REPLACE )?(TABLE|VIEW|SEQUENCE|FUNCTION) (?:IF NOT EXISTS )?\{ns\}[._](\w+)")


def current_version(tx: Tables, tables: Collection[str], namespace: str, prefix: str, known: int) -> int:
    """The schema version that the namespace has; 0 for none. `prefix` stands in front of the names of its tables."""
    if f"{prefix}meta" not in tables:
        if f"{prefix}job" in tables:
            raise _foreign(namespace, f"{prefix}job")
        return 0
    stored = _meta(tx, "version")
    if not stored.isdecimal():
        raise _foreign(namespace, f"{prefix}meta")
    return check_known(int(stored), known, f"the namespace {namespace}")


def created_by(scripts: Iterable[str]) -> dict[str, list[str]]:
    """The names of what scripts create, without the namespace, by kind: table, view, sequence, function."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for script in scripts:
        for kind, name in _CREATED.findall(script):
            found[kind.lower()].add(name)
    return {kind: sorted(names) for kind, names in found.items()}


def current_additions(tx: Tables) -> int:
    """How many additions to the version are recorded."""
    return int(_meta(tx, "additions"))


def _meta(tx: Tables, name: str) -> str:
    rows = tx.rows("SELECT value FROM {ns}.meta WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else "0"


def _foreign(namespace: str, table: str) -> SchemaMismatch:
    return foreign(f"the namespace {namespace}", f"a table {table}")
