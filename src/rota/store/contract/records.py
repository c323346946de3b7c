"""Defines what a store keeps about the system itself: entries (tenants, tokens), and audit records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.store.contract.values import AuditFilter, Page


class EntryVerbs(ABC):
    """Entries: small named records, by kind."""

    @abstractmethod
    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        """Apply edits in their order, each whole or not at all, with their audit records. The names of those that were
        refused because the version had moved on."""

    @abstractmethod
    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        """The entries of these names that exist, in the requested order."""

    @abstractmethod
    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        """Entries of a kind by name; the cursor is the last name."""


class AuditVerbs(ABC):
    """Audit records: what was changed, by whom. Those of schedules and entries come with their edits."""

    @abstractmethod
    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        """Store audit records of other changes. A record whose id exists already stays as it is."""

    @abstractmethod
    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        """Audit records, newest first: by time, then by id."""
