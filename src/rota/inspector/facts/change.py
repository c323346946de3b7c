"""Defines audit records, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.inspector.facts.values import filled
from rota.model.schedules import wording

if TYPE_CHECKING:
    from rota.inspector.changes import Change
    from rota.model.schedules.wording import FieldLine

WHOLE = {"created", "removed", "revoked", "deleted"}  # changes that show every field of a thing


class ChangeFacts(Struct, kw_only=True):
    """One change of one thing: its author, its kind, and the values before and after."""

    id: str
    at: datetime
    by: str
    verb: str
    kind: str
    name: str
    before: dict[str, Any]  # only the fields that differ; instants are ISO text, spans are text such as 1h30m
    after: dict[str, Any]
    says: list[str]  # the same in words, one line per field


def change_facts(change: Change) -> ChangeFacts:
    return filled(
        ChangeFacts,
        change,
        before=wording.plain_form(change.before),
        after=wording.plain_form(change.after),
        says=says_of(change),
    )


def says_of(change: Change) -> list[str]:
    return [str(line) for line in lines_of(change)]


def lines_of(change: Change) -> list[FieldLine]:
    """The differences, one line per field; of a thing that was created or removed, all its fields."""
    defaults = wording.OF_TENANT if change.kind == "tenant" else wording.OF_SCHEDULE
    if change.verb in WHOLE:
        return wording.contents(change.after or change.before, defaults)
    if change.kind == "job":
        return wording.job_change(change.before, change.after)
    return wording.differences(change.before, change.after, defaults)
