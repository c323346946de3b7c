"""Defines MemoryStore: the contract in plain Python, in this process. Each duty is a class in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Features
from rota.store.memory.exchange import Exchanger
from rota.store.memory.firing import Firer
from rota.store.memory.leases import Leases
from rota.store.memory.listing import Listing
from rota.store.memory.moving import Moving
from rota.store.memory.records import Records
from rota.store.memory.schedules import Schedules
from rota.store.memory.upkeep import Upkeep

if TYPE_CHECKING:
    from rota.store.contract import Channel, Listener


class MemoryStore(Exchanger, Firer, Schedules, Leases, Listing, Records, Moving, Upkeep):
    """Jobs and schedules in this process."""

    features = Features(kind="memory", is_durable=False, is_shared=False)

    def open(self) -> None:
        """Nothing to do."""

    def pending_migrations(self) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing to do."""

    def describe(self) -> str:
        return "memory (this process only)"

    def listen(self, channel: Channel) -> Listener:
        return self._notifier.listen(channel)
