"""Divides due schedules among several schedulers, so that they do not try to fire the same ones.

It only saves work. Every firing is guarded by its schedule's version, so a wrong list of live schedulers costs a
refused write at most. If a scheduler does not fire its part, the others do so 250 ms later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from msgspec import Struct

from rota.model.micros import SECOND
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Node

TAKE_OVER_AFTER = SECOND // 4  # microseconds for which the partitions of others are left to them


class Partition(Struct, frozen=True):
    """One of several equal parts of all schedules."""

    index: int = 0
    of: int = 1

    def has(self, schedule: Schedule) -> bool:
        return self.of == 1 or crc32(schedule.id.encode()) % self.of == self.index

    def first_due(self, due: list[Schedule], now: int, most: int) -> list[Schedule]:
        """The due schedules to fire: its own first, else those that others have not fired for 250 ms."""
        if self.of == 1:
            return due[:most]
        own = [schedule for schedule in due if self.has(schedule)]
        return (own or [schedule for schedule in due if (schedule.due_at or now) <= now - TAKE_OVER_AFTER])[:most]


def partition_of(node_id: str, nodes: Iterable[Node], now: int) -> Partition:
    """A node's partition among the schedulers that are alive. That of a node that drains has stopped."""
    others = (node.id for node in nodes if "scheduler" in node.roles and is_alive(node, now) and not node.is_draining)
    ids = sorted({node_id, *others})
    return Partition(ids.index(node_id), len(ids))
