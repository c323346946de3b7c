"""Entries and notes: what the system says of itself, and who changed what. An entry's id is its kind and its name.

Where the server has no transactions, the write that changes an entry puts the note into the entry's own document, which
owes it from then on; the note is written next, and taken off. Whoever lists notes, and the rescuer's round, finish what
a process that died left there. An entry that goes is marked so first, for the same reason, and reads as gone.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec
from bson.max_key import MaxKey
from pymongo import DeleteMany, DeleteOne, InsertOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError

from rota.failpoints import reach
from rota.model.audit_record import AuditRecord
from rota.model.entry import Entry
from rota.store.contract import Page
from rota.store.mongo.jobs import is_duplicate
from rota.store.mongo.waves import waves
from rota.store.shared.matching import audit_cursor, audit_position
from rota.store.shared.unpacking import audit_record_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pymongo.client_session import ClientSession

    from rota.model.entry import EntryEdit
    from rota.store.contract import AuditFilter
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(AuditRecord).decode
_OWES_NOTHING: Document = {"owed.0": {"$exists": False}}


class Notes:
    """One namespace's notes."""

    def add(self, space: Space, notes: Sequence[AuditRecord], session: ClientSession | None = None) -> int:
        """Keep notes, all in one write; how many were new."""
        if not notes:
            return 0
        writes = [UpdateOne({"_id": note.id}, {"$setOnInsert": _document_of_note(note)}, upsert=True) for note in notes]
        return space.notes.bulk_write(writes, ordered=False, session=session).upserted_count

    def page(self, space: Space, where: AuditFilter, cursor: str | None, limit: int) -> Page[AuditRecord]:
        query = _conditions(where, audit_position(cursor) if cursor is not None else None)
        hint = "time" if where.subject is None else "subject"
        found = space.notes.find(query, hint=hint).sort([("at", -1), ("_id", -1)]).limit(limit + 1)
        notes = [_note_of(document) for document in found]
        return Page(notes[:limit], audit_cursor(notes[limit - 1]) if len(notes) > limit else None)

    def prune(self, step: Step, until: int, limit: int) -> int:
        found = step.space.notes.find({"at": {"$lte": until}}, {"_id": 1}, session=step.session, hint="time")
        ids = [document["_id"] for document in found.sort([("at", 1), ("_id", 1)]).limit(limit)]
        if not ids:
            return 0
        return step.space.notes.delete_many({"_id": {"$in": ids}}, session=step.session).deleted_count

    def all(self, space: Space, after: str, limit: int) -> list[AuditRecord]:
        found = space.notes.find({"_id": {"$gt": after}}).sort("_id", 1).limit(limit)
        return [_note_of(document) for document in found]


class Entries:
    """One namespace's entries."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    # Editing.

    def edit(self, step: Step, edits: Sequence[EntryEdit]) -> list[str]:
        """Apply edits in their order; the names of those that were refused because the version had moved on."""
        refused: list[str] = []
        for wave in waves(edits, lambda edit: ((edit.kind, edit.name),)):
            refused += self._edit(step, wave)
        return refused

    def _edit(self, step: Step, edits: Sequence[EntryEdit]) -> list[str]:
        ids = [_key(edit.kind, edit.name) for edit in edits]
        found = step.space.entries.find({"_id": {"$in": ids}, "is_removed": None}, session=step.session)
        versions = {(entry.kind, entry.name): entry.version for entry in map(_entry_of, found)}
        held = [edit for edit in edits if versions.get((edit.kind, edit.name), 0) == edit.expect_version]
        won = self._commit(step, held)
        reach("edit.before_commit")
        notes = [edit.audit for edit in won if edit.audit is not None]
        self._notes.add(step.space, notes, step.session)
        if not step.is_atomic:
            _clear(step.space, [_key(edit.kind, edit.name) for edit in won if _leaves_work(edit)], notes)
        taken = set(map(id, won))
        return [edit.name for edit in edits if id(edit) not in taken]

    def _commit(self, step: Step, edits: Sequence[EntryEdit]) -> list[EntryEdit]:
        """The writes that decide; gives the edits that were taken."""
        real = [edit for edit in edits if edit.expect_version or edit.data is not None]
        if not real:
            return list(edits)
        token = secrets.token_hex(8)
        operations = [_operation(edit, token, is_atomic=step.is_atomic) for edit in real]
        try:
            done = step.space.entries.bulk_write(operations, ordered=False, session=step.session)
            if done.matched_count + done.upserted_count + done.inserted_count + done.deleted_count == len(real):
                return list(edits)
        except BulkWriteError as err:
            if step.is_atomic or not is_duplicate(err):
                raise
        ids = [_key(edit.kind, edit.name) for edit in real]
        found = step.space.entries.find({"_id": {"$in": ids}, "turn": token}, {"_id": 1}, session=step.session)
        mine = {(document["_id"]["kind"], document["_id"]["name"]) for document in found}
        lost = {id(edit) for edit in real if (edit.kind, edit.name) not in mine}
        return [edit for edit in edits if id(edit) not in lost]

    def finish(self, space: Space, limit: int) -> None:
        """Write the notes that others owe, and take away what they left."""
        found = list(space.entries.find({"left": {"$exists": True}}, {"owed": 1}, hint="left").limit(limit))
        if not found:
            return
        notes = [_decode(packed) for document in found for packed in document.get("owed", ())]
        self._notes.add(space, notes)
        _clear(space, [document["_id"] for document in found], notes)

    # Reading.

    def get(self, space: Space, kind: str, names: Sequence[str]) -> list[Entry]:
        ids = [_key(kind, name) for name in names]
        documents = space.entries.find({"_id": {"$in": ids}, "is_removed": None}) if ids else ()
        found = {entry.name: entry for entry in map(_entry_of, documents)}
        return [found[name] for name in names if name in found]

    def page(self, space: Space, kind: str, cursor: str | None, limit: int) -> Page[Entry]:
        beyond = {"$gt": _key(kind, cursor or ""), "$lt": {"kind": kind, "name": MaxKey()}}
        found = self._in_order(space, beyond, limit + 1)
        return Page(found[:limit], found[limit - 1].name if len(found) > limit else None)

    # Moving.

    def all(self, space: Space, after: tuple[str, str], limit: int) -> list[Entry]:
        return self._in_order(space, {"$gt": _key(*after)}, limit)

    def load(self, space: Space, entries: Sequence[Entry]) -> int:
        """Take entries as they are; how many were new."""
        writes = [
            UpdateOne(
                {"_id": _key(entry.kind, entry.name)},
                {"$setOnInsert": {"version": entry.version, "data": entry.data}},
                upsert=True,
            )
            for entry in entries
        ]
        return space.entries.bulk_write(writes, ordered=False).upserted_count if writes else 0

    def _in_order(self, space: Space, ids: Document, limit: int) -> list[Entry]:
        found = space.entries.find({"_id": ids, "is_removed": None}).sort("_id", 1).limit(limit)
        return [_entry_of(document) for document in found]


def _operation(edit: EntryEdit, token: str, *, is_atomic: bool) -> UpdateOne | InsertOne[Document] | DeleteOne:
    mine: Document = {"_id": _key(edit.kind, edit.name)}
    is_new = edit.expect_version == 0
    after = edit.after
    if is_atomic and after is None:
        return DeleteOne({**mine, "version": edit.expect_version})
    if is_atomic and is_new and after is not None:
        return InsertOne({**mine, "version": after.version, "data": after.data})
    fields: Document = {"turn": token}
    fields |= {"is_removed": True} if after is None else {"version": after.version, "data": after.data}
    update: Document = {"$set": fields}
    if not is_atomic and _leaves_work(edit):
        fields["left"] = True
    if not is_atomic and edit.audit is not None:
        update["$push"] = {"owed": _encode(edit.audit).decode()}
    if is_new:  # in the place of one that went, and is not wiped away yet
        return UpdateOne({**mine, "is_removed": True}, {**update, "$unset": {"is_removed": ""}}, upsert=True)
    return UpdateOne({**mine, "version": edit.expect_version, "is_removed": None}, update)


def _leaves_work(edit: EntryEdit) -> bool:
    return edit.audit is not None or edit.data is None


def _clear(space: Space, ids: Sequence[Document], notes: Sequence[AuditRecord]) -> None:
    """Take off what is no longer owed; what went and owes nothing goes."""
    if not ids:
        return
    mine: Document = {"_id": {"$in": list(ids)}}
    paid = [_encode(note).decode() for note in notes]
    space.entries.bulk_write(
        [
            UpdateMany({**mine, "owed": {"$exists": True}}, {"$pull": {"owed": {"$in": paid}}}),
            DeleteMany({**mine, **_OWES_NOTHING, "is_removed": True}),
            UpdateMany({**mine, **_OWES_NOTHING}, {"$unset": {"owed": "", "left": ""}}),
        ],
        ordered=True,
    )


def _key(kind: str, name: str) -> Document:
    return {"kind": kind, "name": name}


def _entry_of(document: Document) -> Entry:
    key = document["_id"]
    return Entry(kind=key["kind"], name=key["name"], version=int(document["version"]), data=document["data"])


def _document_of_note(note: AuditRecord) -> Document:
    return {"at": note.at, "subject": note.subject, "note": _encode(note).decode()}


def _note_of(document: Document) -> AuditRecord:
    packed, subject = str(document.get("note", "")), str(document.get("subject", ""))
    return audit_record_from(packed, record_id=document["_id"], at=document["at"], subject=subject)


def _conditions(where: AuditFilter, before: tuple[int, str] | None) -> Document:
    """A filter as a query; the bound of the page narrows the index, and ends within the notes of one instant."""
    at = {"$gte": where.since, "$lt": where.until, "$lte": before[0] if before else None}
    bounds = {name: value for name, value in at.items() if value is not None}
    query: Document = {"at": bounds} if bounds else {}
    if where.subject is not None:
        query["subject"] = where.subject
    if before is not None:
        query["$or"] = [{"at": {"$lt": before[0]}}, {"_id": {"$lt": before[1]}}]
    return query
