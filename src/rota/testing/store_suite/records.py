"""Tests entries, which a version guards, and audit records, written with the change that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rota.errors import BadOption
from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry, EntryEdit
from rota.model.schedules.edit import pause, remove
from rota.store.contract import AuditFilter, Retention, Seal
from rota.testing.store_suite.builders import DAY, T0, fresh_id
from rota.testing.store_suite.steps import add_schedule, change_schedule, new_schedule, read_schedule

if TYPE_CHECKING:
    from rota.store.contract import Store


def an_audit_record(**fields: Any) -> AuditRecord:
    return AuditRecord(
        **{"id": fresh_id(), "at": T0, "by": "ann", "verb": "changed", "subject": "schedule:tick", **fields}
    )


def put(store: Store, name: str = "acme", data: str = "{}", *, kind: str = "tenant", version: int = 0) -> list[str]:
    return store.edit_entries([EntryEdit(kind=kind, name=name, expect_version=version, data=data)])


def entry(store: Store, name: str = "acme", kind: str = "tenant") -> Entry | None:
    return next(iter(store.get_entries(kind, [name])), None)


def audit_records(store: Store, subject: str | None = None, *, page: int = 50) -> list[AuditRecord]:
    """Every page of the audit records, newest first."""
    found: list[AuditRecord] = []
    cursor: str | None = None
    while True:
        got = store.list_audit_records(AuditFilter(subject=subject), cursor=cursor, limit=page)
        found += got.items
        cursor = got.cursor
        if cursor is None:
            return found


class TestEntries:
    def test_an_entry_is_kept_as_it_was_put(self, store: Store) -> None:
        data = '{"tz": "Asia/Kolkata", "odd": "\'\\u2603"}'
        assert put(store, data=data) == []
        assert entry(store) == Entry(kind="tenant", name="acme", version=1, data=data)

    def test_a_change_raises_the_version(self, store: Store) -> None:
        put(store)
        assert put(store, data="[2]", version=1) == []
        assert entry(store) == Entry(kind="tenant", name="acme", version=2, data="[2]")

    @pytest.mark.parametrize("version", [0, 2])
    def test_a_change_of_another_version_is_refused(self, store: Store, version: int) -> None:
        put(store)
        assert put(store, data="[2]", version=version) == ["acme"]
        assert entry(store) == Entry(kind="tenant", name="acme", version=1, data="{}")

    def test_what_does_not_exist_cannot_be_changed(self, store: Store) -> None:
        assert put(store, version=1) == ["acme"]
        assert entry(store) is None

    def test_an_entry_is_removed(self, store: Store) -> None:
        put(store)
        assert store.edit_entries([EntryEdit(kind="tenant", name="acme", expect_version=1, data=None)]) == []
        assert entry(store) is None
        assert put(store) == []

    def test_edits_of_one_entry_in_one_call_hold_one_after_another(self, store: Store) -> None:
        edits = [
            EntryEdit(kind="tenant", name="acme", expect_version=version, data=data)
            for version, data in ((1, "0"), (0, "1"), (1, "2"), (1, "3"), (2, None), (0, "4"))
        ]
        assert store.edit_entries(edits) == ["acme", "acme"]
        assert entry(store) == Entry(kind="tenant", name="acme", version=1, data="4")

    def test_one_of_several_edits_is_refused_and_the_others_are_taken(self, store: Store) -> None:
        put(store, "b")
        edits = [EntryEdit(kind="tenant", name=name, expect_version=0, data="1") for name in "abc"]
        assert store.edit_entries(edits) == ["b"]
        assert [entry.name for entry in store.list_entries("tenant").items] == ["a", "b", "c"]

    def test_edits_are_applied_in_their_order(self, store: Store) -> None:
        edits = [EntryEdit(kind="tenant", name="a", expect_version=version, data=str(version)) for version in (0, 1, 1)]
        assert store.edit_entries(edits) == ["a"]
        assert store.get_entries("tenant", ["a"])[0].data == "1"

    def test_kinds_are_apart(self, store: Store) -> None:
        put(store, kind="tenant", data="1")
        put(store, kind="token", data="2")
        assert [entry.data for entry in store.list_entries("token").items] == ["2"]
        assert store.get_entries("source", ["acme"]) == []

    def test_entries_come_in_the_order_asked_for(self, store: Store) -> None:
        for name in "abc":
            put(store, name)
        assert [entry.name for entry in store.get_entries("tenant", ["c", "x", "a"])] == ["c", "a"]
        assert store.get_entries("tenant", []) == []

    def test_a_list_goes_by_name_a_page_at_a_time(self, store: Store) -> None:
        for name in ("b", "a:2", "c", "a:10", "A"):
            put(store, name)
        first = store.list_entries("tenant", limit=2)
        rest = store.list_entries("tenant", cursor=first.cursor, limit=3)
        assert [entry.name for entry in [*first.items, *rest.items]] == ["A", "a:10", "a:2", "b", "c"]
        assert rest.cursor is None

    def test_a_sealed_store_takes_none(self, store: Store) -> None:
        seal = Seal(target="elsewhere")
        store.seal(seal)
        with pytest.raises(type(seal.refusal("")), match="elsewhere"):
            put(store)
        store.seal(None)
        assert entry(store) is None


class TestAuditRecords:
    def test_audit_records_are_kept_newest_first(self, store: Store) -> None:
        made = [an_audit_record(at=T0 + number, before="{}", after='{"a":1}') for number in range(5)]
        store.add_audit_records([made[3], made[0], made[4], made[1], made[2]])
        assert audit_records(store) == made[::-1]
        assert audit_records(store, page=2) == made[::-1]

    def test_audit_records_of_one_instant_go_by_id(self, store: Store) -> None:
        made = sorted((an_audit_record() for _ in range(5)), key=lambda audit: audit.id, reverse=True)
        store.add_audit_records(made[::-1])
        assert audit_records(store, page=2) == made

    def test_an_audit_record_that_comes_twice_is_one(self, store: Store) -> None:
        audit = an_audit_record()
        store.add_audit_records([audit])
        store.add_audit_records([audit, msgspec.structs.replace(audit, by="eve")])
        assert audit_records(store) == [audit]

    def test_audit_records_by_subject(self, store: Store) -> None:
        mine = [an_audit_record(subject="tenant:a", at=T0 + number) for number in range(3)]
        store.add_audit_records([*mine, an_audit_record(subject="tenant:ab"), an_audit_record(subject="schedule:a")])
        assert audit_records(store, "tenant:a", page=2) == mine[::-1]
        assert audit_records(store, "tenant:b") == []

    def test_audit_records_by_time(self, store: Store) -> None:
        store.add_audit_records([an_audit_record(at=T0 + number, verb=str(number)) for number in range(5)])
        found = store.list_audit_records(AuditFilter(since=T0 + 1, until=T0 + 4, subject="schedule:tick"))
        assert [audit.verb for audit in found.items] == ["3", "2", "1"]
        assert store.list_audit_records(AuditFilter(since=T0 + 1, until=T0 + 4)).items == found.items

    @pytest.mark.parametrize("cursor", ["x", "1", "-1", "1-", "²-a"])
    def test_a_cursor_that_no_list_gave_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(BadOption, match="none that a list gave"):
            store.list_audit_records(AuditFilter(), cursor=cursor)

    def test_an_audit_record_comes_with_the_edit_of_a_schedule(self, store: Store) -> None:
        audit = an_audit_record(verb="created")
        change_schedule(store, msgspec.structs.replace(new_schedule("tick"), audit=audit))
        assert audit_records(store, "schedule:tick") == [audit]

    def test_a_refused_edit_leaves_no_audit(self, store: Store) -> None:
        stale = pause(add_schedule(store), T0, reason="", by="", until=None)
        change_schedule(store, pause(read_schedule(store), T0, reason="", by="", until=None))
        assert store.edit_schedules([msgspec.structs.replace(stale, audit=an_audit_record())], now=T0) == ["tick"]
        assert audit_records(store) == []

    def test_audit_records_outlive_their_schedule(self, store: Store) -> None:
        audit = an_audit_record(verb="removed")
        change_schedule(store, msgspec.structs.replace(remove(add_schedule(store), T0), audit=audit))
        assert audit_records(store, "schedule:tick") == [audit]

    def test_many_edits_bring_as_many_audit_records(self, store: Store) -> None:
        made = [an_audit_record(subject=f"schedule:{name}", at=T0 + ord(name)) for name in "abcdef"]
        edits = [
            msgspec.structs.replace(new_schedule(name), audit=audit) for name, audit in zip("abcdef", made, strict=True)
        ]
        assert store.edit_schedules(edits, now=T0) == []
        assert audit_records(store) == made[::-1]

    def test_an_audit_record_comes_with_the_edit_of_an_entry(self, store: Store) -> None:
        audit = an_audit_record(subject="tenant:acme")
        edit = EntryEdit(kind="tenant", name="acme", expect_version=0, data="{}", audit=audit)
        assert store.edit_entries([edit]) == []
        assert store.edit_entries([msgspec.structs.replace(edit, audit=an_audit_record())]) == ["acme"]
        assert audit_records(store) == [audit]

    def test_old_audit_records_are_pruned(self, store: Store) -> None:
        store.add_audit_records([an_audit_record(at=T0 + number * DAY, verb=str(number)) for number in range(4)])
        assert store.prune(Retention(audit_for=2 * DAY), 10, now=T0 + 3 * DAY).audit_records == 2
        assert [audit.verb for audit in audit_records(store)] == ["3", "2"]
        assert [audit.verb for audit in audit_records(store, "schedule:tick")] == ["3", "2"]

    def test_audit_records_are_pruned_in_bounded_batches(self, store: Store) -> None:
        store.add_audit_records([an_audit_record() for _ in range(5)])
        pruned = [store.prune(Retention(audit_for=DAY), 2, now=T0 + DAY).audit_records for _ in range(4)]
        assert pruned == [2, 2, 1, 0]

    def test_the_oldest_are_pruned_first(self, store: Store) -> None:
        made = [an_audit_record(at=T0 + number, id=f"{9 - number}-{fresh_id()}") for number in range(4)]
        store.add_audit_records(made)
        assert store.prune(Retention(audit_for=DAY), 2, now=T0 + 2 * DAY).audit_records == 2
        assert audit_records(store) == [made[3], made[2]]
