"""Decides who owns a lock, until when, and with which fencing number.

A store keeps one state per name, and writes the result of `decide_lock` only if the state has not changed since.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from rota.model.clock.repair import TOLERANCE

LockAct = Literal["acquire", "extend", "release"]


class LockState(Struct, frozen=True, kw_only=True):
    """A lock as it is kept. The number stays when a lock is free: the next owner's is higher."""

    token: str = ""  # of the last owner; empty: it was released
    until: int = 0
    number: int = 0
    ttl: int | None = None  # for how long its owner requested it; None: not known


class LockDecision(NamedTuple):
    """The answer to the caller, and the state to write."""

    number: int | None  # the caller's fencing number; None: the lock is not the caller's
    after: LockState | None  # None: nothing changes


def decide_lock(lock: LockState, act: LockAct, token: str, ttl: int, now: int) -> LockDecision:
    """The result of an act on a lock. A free or expired lock can be acquired; only its owner extends or releases it."""
    owner = lock.token if lock.until > now else ""
    if act == "acquire" and owner in {"", token}:
        number = lock.number + (owner != token)
        return LockDecision(number, LockState(token=token, until=now + ttl, number=number, ttl=ttl))
    if owner != token:
        return LockDecision(None, _bounded(lock, now) if act == "acquire" else None)
    if act == "release":
        return LockDecision(lock.number, LockState(number=lock.number))
    return LockDecision(lock.number, msgspec.structs.replace(lock, until=now + ttl, ttl=ttl))


def _bounded(lock: LockState, now: int) -> LockState | None:
    """The lock with an earlier end, if another owner asks for it; None: nothing changes. A lock that ends later than
    its owner's term allows was acquired by a clock that stood ahead. Its owner may live, so the lock ends one whole
    term from now."""
    if lock.ttl is None or lock.until <= now + lock.ttl + TOLERANCE:
        return None
    return msgspec.structs.replace(lock, until=now + lock.ttl)
