"""The lock table: who has which name, until when by the lease clock, and with which fencing number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


class LockTable:
    """One namespace's locks. `lease` is the lease clock and the boot that it counts from."""

    def __init__(self, namespace: str) -> None:
        self._name = f"{namespace}_lock"

    def acquire(
        self, connection: sqlite3.Connection, name: str, token: str, ttl: int, lease: tuple[int, str]
    ) -> int | None:
        at, boot = lease
        owner, number = self._owner(connection, name, lease)
        if owner not in {"", token}:
            return None
        number += owner != token
        connection.execute(
            f"INSERT OR REPLACE INTO {self._name} VALUES (?, ?, ?, ?, ?)", (name, token, at + ttl, boot, number)
        )
        return number

    def extend(self, connection: sqlite3.Connection, name: str, token: str, ttl: int, lease: tuple[int, str]) -> bool:
        if self._owner(connection, name, lease)[0] != token:
            return False
        connection.execute(f"UPDATE {self._name} SET until = ? WHERE name = ?", (lease[0] + ttl, name))
        return True

    def release(self, connection: sqlite3.Connection, name: str, token: str, lease: tuple[int, str]) -> bool:
        if self._owner(connection, name, lease)[0] != token:
            return False
        connection.execute(f"UPDATE {self._name} SET token = '', until = 0 WHERE name = ?", (name,))
        return True

    def _owner(self, connection: sqlite3.Connection, name: str, lease: tuple[int, str]) -> tuple[str, int]:
        """Who has the lock now ("": nobody), and the last fencing number that was given."""
        at, boot = lease
        query = f"SELECT token, until, boot, number FROM {self._name} WHERE name = ?"
        row = connection.execute(query, (name,)).fetchone()
        if row is None:
            return "", 0
        token, until, of_boot, number = row
        return (token if until > at and of_boot == boot else ""), number
