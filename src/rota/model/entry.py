"""Defines entries: small named records of the system itself (a tenant, a token), each with a version that guards its
changes.

The data of an entry is JSON text that its owner reads. A store keeps it, finds it by name, and lists it by kind.
"""

from __future__ import annotations

from msgspec import Struct

from rota.model.audit_record import AuditRecord


class Entry(Struct, frozen=True, kw_only=True):
    """One record of a kind."""

    kind: str
    name: str
    version: int  # rises with every change
    data: str


class EntryEdit(Struct, frozen=True, kw_only=True):
    """One change of one entry, taken only if it still has the version that was decided on."""

    kind: str
    name: str
    expect_version: int  # 0: there must be none yet
    data: str | None  # None: the entry is removed
    audit: AuditRecord | None = None  # kept in the same step

    @property
    def after(self) -> Entry | None:
        """The entry after the edit; None if it is removed."""
        if self.data is None:
            return None
        return Entry(kind=self.kind, name=self.name, version=self.expect_version + 1, data=self.data)
