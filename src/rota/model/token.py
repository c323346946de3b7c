"""Defines a token for the HTTP API as the store keeps it: only a hash of its secret."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Role = Literal["read", "operate", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token as it is kept."""

    name: str
    role: Role
    hash: str
    created_at: int
    created_by: str = ""
    expires_at: int | None = None

    def has_expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now
