"""The memory store's locks: who has which name, until when, and with which fencing number."""

from __future__ import annotations

from rota.model.clock_repair import lock_end


class Locks:
    """Token, end, number and term per name."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, int, int, int]] = {}

    def acquire(self, name: str, token: str, ttl: int, now: int) -> int | None:
        owner, number = self._owner(name, now)
        if owner not in {"", token}:
            _, until, _, term = self._held[name]
            self._held[name] = (owner, lock_end(until, term, now), number, term)
            return None
        number += owner != token
        self._held[name] = (token, now + ttl, number, ttl)
        return number

    def extend(self, name: str, token: str, ttl: int, now: int) -> bool:
        owner, number = self._owner(name, now)
        if owner != token:
            return False
        self._held[name] = (token, now + ttl, number, ttl)
        return True

    def release(self, name: str, token: str, now: int) -> bool:
        owner, number = self._owner(name, now)
        if owner != token:
            return False
        self._held[name] = ("", 0, number, 0)  # the number stays: the next owner's is higher
        return True

    def numbers(self) -> list[tuple[str, int]]:
        """The last number of every name."""
        return [(name, self._held[name][2]) for name in sorted(self._held)]

    def load(self, name: str, number: int) -> bool:
        """Go on from a number that was given elsewhere; False where a higher one was given here."""
        token, until, last, term = self._held.get(name, ("", 0, 0, 0))
        if number <= last:
            return False
        self._held[name] = (token, until, number, term)
        return True

    def _owner(self, name: str, now: int) -> tuple[str, int]:
        """Who has the lock now ("": nobody), and the last number that was given."""
        token, until, number, _ = self._held.get(name, ("", 0, 0, 0))
        return (token if until > now else ""), number
