"""Holds the locks of the memory store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.lock import LockState, decide_lock

if TYPE_CHECKING:
    from rota.model.lock import LockAct

UNUSED = LockState()


class Locks:
    """The state of every name."""

    def __init__(self) -> None:
        self._states: dict[str, LockState] = {}

    def change(self, name: str, act: LockAct, token: str, ttl: int, now: int) -> int | None:
        decision = decide_lock(self._states.get(name, UNUSED), act, token, ttl, now)
        if decision.after is not None:
            self._states[name] = decision.after
        return decision.number

    def numbers(self) -> list[tuple[str, int]]:
        """The last number of every name."""
        return [(name, self._states[name].number) for name in sorted(self._states)]

    def load(self, name: str, number: int) -> bool:
        """Continue from a number that another store has given; False if a higher one was given here."""
        state = self._states.get(name, UNUSED)
        if number <= state.number:
            return False
        self._states[name] = msgspec.structs.replace(state, number=number)
        return True
