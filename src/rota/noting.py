"""Noting: who did what by hand with things that have no versions of their own: jobs and queues."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.identity import whoami
from rota.model.names import new_id
from rota.model.note import Author, note_of, subject_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.contract import Store

RANDOM = SystemRandom()  # seeded by nobody, and other in every process


class Deed(NamedTuple):
    """What was done with one thing."""

    name: str
    verb: str
    before: dict[str, Any]
    after: dict[str, Any]


def note_down(store: Store, kind: str, deeds: Iterable[Deed], by: str = "", random: Random = RANDOM) -> None:
    """Keep notes of deeds; without a name they are the system user's."""
    now, author = store.now(), by or whoami()
    store.add_notes(
        [
            note_of(
                Author(note_id=new_id(random, now), by=author, verb=deed.verb),
                subject_of(kind, deed.name),
                deed.before,
                deed.after,
                now,
            )
            for deed in deeds
        ]
    )
