"""Places in line: the server gives them as it writes jobs, so that whoever adds some asks for none beforehand.

A timestamp that is inserted empty becomes the server's own: the second and a number within it, which rises with every
write and never repeats; a batch gets them in its order. A job's `seq` is that timestamp as one number. What was written
by version 1 of the schema has small numbers of its own, which the server sorts before all timestamps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson.timestamp import Timestamp

if TYPE_CHECKING:
    from rota.store.mongo.space import Document

UNPLACED = Timestamp(0, 0)  # what the server replaces with the next place
_BITS = 32


def seq_of(place: Any) -> Any:
    """A stored place as a number; what else was written there by hand stays what it is."""
    return place.time << _BITS | place.inc if isinstance(place, Timestamp) else place


def place_of(seq: int) -> Timestamp | int:
    return Timestamp(seq >> _BITS, seq & ((1 << _BITS) - 1)) if seq >> _BITS else seq


# Conditions. The server compares within one type alone, and so has to be told of the numbers of version 1.


def before(seq: int) -> Document:
    place = place_of(seq)
    return {"$lt": place} if isinstance(place, int) else {"$not": {"$gte": place}}


def up_to(seq: int) -> Document:
    place = place_of(seq)
    return {"$lte": place} if isinstance(place, int) else {"$not": {"$gt": place}}


def beyond(seq: int) -> Document:
    place = place_of(seq)
    return {"$not": {"$lte": place}} if isinstance(place, int) else {"$gt": place}
