"""Unpacks nodes and notes that stores keep as JSON. One that cannot be read is shown with its id and the reason.

A list must show every record: one that somebody wrote by hand, or another version of Rota, must not hide the others.
"""

from __future__ import annotations

import msgspec

from rota.model.note import Note
from rota.store.contract import Node

_decode_node = msgspec.json.Decoder(Node).decode
_decode_note = msgspec.json.Decoder(Note).decode


def node_from(node_id: str, packed: str | bytes, beat_at: int | None = None) -> Node:
    """A node; its last heartbeat may be kept beside its record."""
    try:
        node = _decode_node(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as err:
        node = Node(id=node_id, host="", pid=0, roles=(), problem=f"cannot be read: {err}")
    return node if beat_at is None else msgspec.structs.replace(node, beat_at=beat_at)


def note_from(packed: str | bytes, *, note_id: str, at: int, subject: str) -> Note:
    """A note; the rest is what its index says of it."""
    try:
        return _decode_note(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as err:
        return Note(id=note_id, at=at, by="", verb=f"cannot be read: {err}", subject=subject)
