"""Keeps entries (records of the system itself) and audit records (who changed what). An entry's id is `kind:name`.

If the server has no transactions, the write that changes an entry stores the audit record in the entry's own document,
under `owed`. The audit record is written next, and then removed there. Lists of audit records, and the search for
expired leases, finish what a process that died has left. A removed entry is first marked as removed, for the same
reason, and reads as removed.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import msgspec
from pymongo import DeleteMany, DeleteOne, UpdateMany, UpdateOne

from rota.failpoints import reach
from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.store.mongo.codec import between, given
from rota.store.shared.batching import batches
from rota.store.shared.matching import audit_cursor, audit_position
from rota.store.shared.paging import page_of
from rota.store.shared.unpacking import audit_record_from

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.entry import EntryEdit
    from rota.store.contract import AuditFilter, Page
    from rota.store.mongo.database import Database, Document
    from rota.store.mongo.steps import Step, Steps

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(AuditRecord).decode
KEPT = {"is_removed": None}
_NONE = {"version": 0}
_OWES_NOTHING: Document = {"owed.0": {"$exists": False}}


class Records:
    """One namespace's entries and audit records."""

    def __init__(self, steps: Steps, deliver: Callable[[Database], None]) -> None:
        self._steps = steps
        self._deliver = deliver  # what other processes left half done

    def edit_entries(self, edits: Sequence[EntryEdit]) -> list[str]:
        """Apply edits in their order; the names of those that were refused because the version is another."""
        with self._steps.work(None):
            return self._steps.run("edit", lambda step: _edit(step, edits))

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        with self._steps.connection.call() as db:
            ids = [_id_of(kind, name) for name in names]
            found = db.entries.by_id(ids, **KEPT)
        return [entry_of(found[key]) for key in ids if key in found]

    def list_entries(self, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        with self._steps.connection.call() as db:
            ids = {"$gt": _id_of(kind, cursor or ""), "$lt": f"{kind};"}
            found = [entry_of(document) for document in db.entries.in_order({"_id": ids, **KEPT}, limit + 1)]
        return page_of(found, limit, lambda entry: entry.name)

    def add_audit_records(self, audits: Sequence[AuditRecord]) -> None:
        with self._steps.connection.call() as db:
            add_audit_records(db, audits)

    def list_audit_records(self, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        query = _conditions(where, audit_position(cursor) if cursor is not None else None)
        hint = "time" if where.subject is None else "subject"
        with self._steps.connection.call() as db:
            self._deliver(db)  # no edit is seen without its audit record
            found = db.audit.find(query, hint=hint).sort([("at", -1), ("_id", -1)]).limit(limit + 1)
            audits = [_audit_record_of(document) for document in found]
        return page_of(audits, limit, audit_cursor)


def finish_edits(db: Database, limit: int) -> None:
    """Write the audit records that entries of other processes owe."""
    found = list(db.entries.find({"left": {"$exists": True}}, {"owed": 1}, hint="left").limit(limit))
    if found:
        audits = [_decode(packed) for document in found for packed in document.get("owed", ())]
        add_audit_records(db, audits)
        _clear(db, [document["_id"] for document in found], audits)


def add_audit_records(db: Database, audits: Sequence[AuditRecord]) -> int:
    """Keep audit records, all in one write; how many were new."""
    return db.audit.insert_missing(
        {"_id": audit.id, "at": audit.at, "subject": audit.subject, "record": _encode(audit).decode()}
        for audit in audits
    )


def prune_audit_records(step: Step, until: int, limit: int) -> int:
    found = step.audit.find({"at": {"$lte": until}}, {"_id": 1}, hint="time").sort([("at", 1), ("_id", 1)])
    ids = [document["_id"] for document in found.limit(limit)]
    return step.audit.delete_many({"_id": {"$in": ids}}) if ids else 0


def load_entries(db: Database, entries: Sequence[Entry]) -> int:
    """Take entries as they are; how many were new."""
    return db.entries.insert_missing(
        {"_id": _id_of(entry.kind, entry.name), "version": entry.version, "data": entry.data} for entry in entries
    )


def _edit(step: Step, edits: Sequence[EntryEdit]) -> list[str]:
    refused: list[str] = []
    for batch in batches(edits, lambda edit: ((edit.kind, edit.name),)):
        ids = {_id_of(edit.kind, edit.name): edit for edit in batch}
        found = step.entries.by_id(ids, {"version": 1}, **KEPT)
        valid = {key: edit for key, edit in ids.items() if found.get(key, _NONE)["version"] == edit.expect_version}
        won = _commit(step, valid)
        reach("edit.before_commit")
        audits = [edit.audit for edit in won.values() if edit.audit is not None]
        add_audit_records(step, audits)
        if not step.is_atomic:
            _clear(step, [key for key, edit in won.items() if _leaves_work(edit)], audits)
        refused += [edit.name for key, edit in ids.items() if key not in won]
    return refused


def _commit(step: Step, edits: dict[str, EntryEdit]) -> dict[str, EntryEdit]:
    """Do the writes that decide; the edits that were taken."""
    token = secrets.token_hex(8)
    real = {key: edit for key, edit in edits.items() if edit.expect_version or edit.data is not None}
    writes = {key: _write(key, edit, token, is_atomic=step.is_atomic) for key, edit in real.items()}
    written = step.entries.write_guarded(writes, token) if writes else set()
    return {key: edit for key, edit in edits.items() if key not in real or key in written}


def _write(key: str, edit: EntryEdit, token: str, *, is_atomic: bool) -> Any:
    """The guarded write of an edit."""
    after = edit.after
    if is_atomic and after is None:
        return DeleteOne({"_id": key, "version": edit.expect_version})
    fields: Document = {"token": token}
    fields |= {"is_removed": True} if after is None else {"version": after.version, "data": after.data}
    update: Document = {"$set": fields}
    if not is_atomic and _leaves_work(edit):
        fields["left"] = True
    if not is_atomic and edit.audit is not None:
        update["$push"] = {"owed": _encode(edit.audit).decode()}
    if edit.expect_version == 0:  # a removed entry of that name may still be there
        return UpdateOne({"_id": key, "is_removed": True}, {**update, "$unset": {"is_removed": ""}}, upsert=True)
    return UpdateOne({"_id": key, "version": edit.expect_version, **KEPT}, update)


def _leaves_work(edit: EntryEdit) -> bool:
    return edit.audit is not None or edit.data is None


def _clear(db: Database, ids: Sequence[str], audits: Sequence[AuditRecord]) -> None:
    """Remove what is written by now from `owed`; delete removed entries that owe nothing."""
    if not ids:
        return
    mine: Document = {"_id": {"$in": list(ids)}}
    paid = [_encode(audit).decode() for audit in audits]
    db.entries.bulk_write(
        [
            UpdateMany({**mine, "owed": {"$exists": True}}, {"$pull": {"owed": {"$in": paid}}}),
            DeleteMany({**mine, **_OWES_NOTHING, "is_removed": True}),
            UpdateMany({**mine, **_OWES_NOTHING}, {"$unset": {"owed": "", "left": ""}}),
        ],
        ordered=True,
    )


def _id_of(kind: str, name: str) -> str:
    return f"{kind}:{name}"


def entry_of(document: Document) -> Entry:
    kind, _, name = document["_id"].partition(":")
    return Entry(kind=kind, name=name, version=int(document["version"]), data=document["data"])


def _audit_record_of(document: Document) -> AuditRecord:
    packed, subject = str(document.get("record", "")), str(document.get("subject", ""))
    return audit_record_from(packed, record_id=document["_id"], at=document["at"], subject=subject)


def _conditions(where: AuditFilter, before: tuple[int, str] | None) -> Document:
    """A filter as a query. The bound of the page limits the index, and ends within the records of one instant."""
    at = between(gte=where.since, lt=where.until, lte=before[0] if before else None)
    rest = {"$or": [{"at": {"$lt": before[0]}}, {"_id": {"$lt": before[1]}}]} if before else {}
    return {**given(at=at, subject=where.subject), **rest}
