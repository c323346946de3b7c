"""Stores the record of a take-over: an entry of the store for each item, with the last step that was done.

Each step is written so that a command that was killed can repeat what follows without harm. The version of the entry
guards it: of two commands at once, one is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from rota.errors import Refused
from rota.inspector.reading import all_entries
from rota.model.entry import Entry, EntryEdit

if TYPE_CHECKING:
    from rota.store.contract import Store

KIND = "take-over"

# Forwards: holding, held, off, taken. Backwards: releasing (then no entry) before it is off, else returning, back.
Step = Literal["holding", "held", "off", "taken", "releasing", "returning", "back"]
UNDER_WAY: tuple[Step, ...] = ("holding", "held", "off", "releasing", "returning")


class TakeOver(Struct, frozen=True, kw_only=True):
    """How far the take-over of one item has come."""

    source: str  # the system and the database, without its password
    row: int
    name: str  # what the item is called there
    step: Step
    before: datetime | None  # the start time that the item has of its own
    until: datetime  # the start time that keeps beat from sending it
    through: int = 0  # microseconds: the times up to here had their turn in the system that was left
    never_ran: bool = False  # beat had not run it when it was taken over


class Records:
    """Reads and writes the entries of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, schedule_id: str) -> tuple[TakeOver | None, int]:
        """The record of an item and its version; None and 0 if there is none."""
        found = self._store.get_entries(KIND, [schedule_id])
        return (unpack(found[0]), found[0].version) if found else (None, 0)

    def write(self, schedule_id: str, record: TakeOver | None, version: int) -> int:
        """Write the next step, or remove the record; answers the new version."""
        data = None if record is None else msgspec.json.encode(record).decode()
        edit = EntryEdit(kind=KIND, name=schedule_id, expect_version=version, data=data)
        if self._store.edit_entries([edit]):
            raise Refused(
                f"another process takes over or gives back schedule '{schedule_id}' at this time; let it finish, then "
                "run the command again"
            )
        return version + 1


def unpack(entry: Entry) -> TakeOver:
    return msgspec.json.decode(entry.data, type=TakeOver)


def read_every(store: Store) -> dict[str, TakeOver]:
    """The records of all items of all sources, by the id of their schedule."""
    return {entry.name: unpack(entry) for entry in all_entries(store, KIND)}
