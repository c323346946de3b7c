"""Refuses a schema that Rota did not make, or that a newer Rota made; finds the namespaces that it did make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_known(version: int, known: int, where: str) -> int:
    """The version of a schema, if this code knows it."""
    if version > known:
        raise SchemaMismatch(
            f"{where} has schema version {version}, this Rota knows up to {known}; "
            "install the newer Rota that made it, or use another namespace"
        )
    return version


def foreign(where: str, what: str) -> SchemaMismatch:
    """The error for tables, collections or keys of somebody else."""
    return SchemaMismatch(f"{where} has {what} that Rota did not make; choose another namespace")


def namespaces_among(tables: Iterable[str]) -> list[str]:
    """The namespaces of a store that puts the namespace in front of the names of its tables or collections."""
    names = set(tables)
    metas = {name.removesuffix("_meta") for name in names if name.endswith("_meta")}
    return sorted(name for name in metas if {f"{name}_job", f"{name}_schedule"} <= names)
