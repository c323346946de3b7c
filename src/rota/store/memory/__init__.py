"""Defines the memory store: the contract in plain Python, to be read first. It ends with its process."""

from __future__ import annotations

from rota.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
