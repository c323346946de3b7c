"""Notes: every change that somebody made, kept with who, when, and what was before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.model.redaction import DEFAULT

if TYPE_CHECKING:
    from rota.model.schedule import Schedule

_SHOWN = ("is_enabled", "pause", "tenant_pause", "origin", "problem")


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change of one thing. Its id makes it one note, however often it is written."""

    id: str
    at: int
    by: str
    verb: str  # created, changed, paused, …
    subject: str  # what kind of thing, and which: schedule:daily
    before: str = ""  # what differs, as a JSON object
    after: str = ""


class Author(Struct, frozen=True, kw_only=True):
    """Who does something, and what it is: all that a note needs beside the change."""

    note_id: str
    by: str
    verb: str


def subject_of(kind: str, name: str) -> str:
    return f"{kind}:{name}"


def note_of(author: Author, subject: str, before: dict[str, Any], after: dict[str, Any], at: int) -> Note:
    """What differs between two forms of a thing."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return Note(
        id=author.note_id,
        at=at,
        by=author.by,
        verb=author.verb,
        subject=subject,
        before=_packed({name: before[name] for name in names if name in before}),
        after=_packed({name: after[name] for name in names if name in after}),
    )


def facts_of(schedule: Schedule | None) -> dict[str, Any]:
    """What a note tells of a schedule: what its author and its operators said, not what it has done."""
    if schedule is None:
        return {}
    said = msgspec.to_builtins(schedule.spec)
    kept = {name: msgspec.to_builtins(getattr(schedule, name)) for name in _SHOWN}
    return {**said, **{name: value for name, value in kept.items() if value is not None}}


def _packed(facts: dict[str, Any]) -> str:
    """As JSON; an audit record outlives its thing, so that no secret may be in it."""
    if isinstance(facts.get("payload"), str):
        facts = {**facts, "payload": DEFAULT.payload(facts["payload"])}
    return msgspec.json.encode(facts).decode() if facts else ""
