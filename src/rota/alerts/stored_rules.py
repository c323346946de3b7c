"""Reads and changes the alert rules that the store keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import Refused, VersionConflict
from rota.model.alerts.incident import KIND
from rota.model.alerts.stored_rule import (
    RULE_KIND,
    KeptRule,
    StoredRule,
    audited_rule,
    pack_rule,
    unpack_rule,
)
from rota.model.audit_record import Author, audit_record_of, subject_of
from rota.model.entry import EntryEdit
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.entry import Entry
    from rota.store.contract import Store

MOST_STORED = LARGEST_PAGE  # rules in one store: one call reads them all
TRIES = 5


def read_stored_rules(store: Store) -> dict[str, KeptRule]:
    """All stored rules by name, those of other apps included; one call."""
    entries = store.list_entries(RULE_KIND, limit=MOST_STORED).items
    found = ((entry, unpack_rule(entry.data)) for entry in entries)
    return {
        entry.name: KeptRule(app=one.app, rule=one.rule, version=entry.version)
        for entry, one in found
        if one is not None
    }


class StoredRules:
    """Changes stored rules, each change guarded by the rule's version and stored as an audit record."""

    def __init__(self, store: Store, new_id: Callable[[], str]) -> None:
        self._store = store
        self._new_id = new_id

    def put(self, wanted: StoredRule, by: str, expect_version: int | None) -> KeptRule:
        name = wanted.rule.name
        for _ in range(TRIES):
            entry = self._entry(name)
            _check_version(entry, name, expect_version)
            before = None if entry is None else unpack_rule(entry.data)
            if before is not None and before.app != wanted.app:
                raise Refused(
                    f"alert rule {name!r} belongs to app {before.app!r}, and this is app {wanted.app!r}; change it "
                    "there, or choose another name"
                )
            version = 0 if entry is None else entry.version
            if before == wanted:
                return KeptRule(app=wanted.app, rule=wanted.rule, version=version)
            if entry is None:
                self._check_room()
            if self._edit(name, version, before, wanted, by, "created" if entry is None else "changed"):
                return KeptRule(app=wanted.app, rule=wanted.rule, version=version + 1)
        raise VersionConflict(f"alert rule {name!r} kept changing; try again")

    def remove(self, name: str, by: str, expect_version: int | None) -> StoredRule | None:
        """The rule that was removed; None if there is none, or if it could not be read."""
        for _ in range(TRIES):
            entry = self._entry(name)
            if entry is None:
                return None
            _check_version(entry, name, expect_version)
            before = unpack_rule(entry.data)
            if self._edit(name, entry.version, before, None, by, "removed"):
                return before
        raise VersionConflict(f"alert rule {name!r} kept changing; try again")

    def has(self, name: str) -> bool:
        return self._entry(name) is not None

    def _entry(self, name: str) -> Entry | None:
        return next(iter(self._store.get_entries(RULE_KIND, [name])), None)

    def _check_room(self) -> None:
        if len(self._store.list_entries(RULE_KIND, limit=MOST_STORED).items) >= MOST_STORED:
            raise Refused(f"the store has {MOST_STORED} alert rules, and keeps no more; remove one, or use prefixes")

    def _edit(
        self, name: str, version: int, before: StoredRule | None, after: StoredRule | None, by: str, verb: str
    ) -> bool:
        author = Author(record_id=self._new_id(), by=by, verb=verb)
        audit = audit_record_of(
            author, subject_of(KIND, name), audited_rule(before), audited_rule(after), self._store.now()
        )
        data = None if after is None else pack_rule(after.app, after.rule)
        edit = EntryEdit(kind=RULE_KIND, name=name, expect_version=version, data=data, audit=audit)
        return not self._store.edit_entries([edit])


def _check_version(entry: Entry | None, name: str, expect: int | None) -> None:
    version = entry.version if entry else 0
    if version and expect == 0:
        raise VersionConflict(f"there is an alert rule '{name}' already, in version {version}")
    if expect is not None and version != expect:
        raise VersionConflict(f"alert rule '{name}' has version {version}, not {expect}: somebody changed it first")
