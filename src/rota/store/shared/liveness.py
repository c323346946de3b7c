"""Liveness: which nodes the store has heard of lately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import SECOND

if TYPE_CHECKING:
    from rota.store.contract import Node

SILENT_AFTER = 20 * SECOND  # a node says every 5 s that it is there; one late beat is no death


def is_alive(node: Node, now: int) -> bool:
    """Whether a node still says that it is there. A beat of a time that has not come is no sign of life: the clock was
    ahead then, and a live node has beaten since."""
    return now - SILENT_AFTER < node.beat_at < now + SILENT_AFTER
