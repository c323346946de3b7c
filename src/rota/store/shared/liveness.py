"""Decides which nodes are alive, by their heartbeats: one rule for health, metrics, `why` and the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.micros import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.store.contract import Node

SILENT_AFTER = 20 * SECOND  # a heartbeat comes every 5 s; a slow store may delay a few of them


def is_alive(node: Node, now: int) -> bool:
    """Whether the last heartbeat is recent. One from the future does not count: the clock was ahead then,
    and a live node has sent another since."""
    return now - SILENT_AFTER < node.beat_at < now + SILENT_AFTER


def live_nodes(nodes: Iterable[Node], now: int) -> list[Node]:
    return [node for node in nodes if is_alive(node, now)]
