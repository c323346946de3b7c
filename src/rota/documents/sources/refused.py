"""Remembers the documents that a server refuses to lock, so that one of them does not keep the others from running.

A rule of the owner's may forbid every write of a document: a check constraint that older rows do not meet, a trigger, a
validator. Such a document would be the oldest one in every query.
"""

from __future__ import annotations

import time
from typing import Any

LEFT_OUT_FOR = 60.0  # seconds; then it is tried again, because its owner may have corrected it
MOST = 1_000  # if a server refuses more, something else is wrong


class Refused:
    """Ids that the next queries leave out."""

    def __init__(self) -> None:
        self._found: list[tuple[Any, float]] = []  # ids of any type need not be hashable

    def add(self, id_: Any) -> None:
        now = time.monotonic()
        kept = [one for one in self._found if one[1] > now]
        self._found = [*kept, (id_, now + LEFT_OUT_FOR)][:MOST]

    def ids(self) -> list[Any]:
        now = time.monotonic()
        return [id_ for id_, until in self._found if until > now]
