"""Stores in a process that was forked off: what its parent opened is not its own, and is opened again by itself.

A web server that loads an app and then forks its workers (gunicorn with --preload) leaves each of them connections that
all share, locks that no thread will free, and threads that are not there.
"""

from __future__ import annotations

import ctypes
import os
from typing import Protocol
from weakref import WeakKeyDictionary


class Lock(Protocol):
    def acquire(self, *, timeout: float) -> bool: ...

    def release(self) -> None: ...


class Forked(Protocol):
    """Whatever holds connections, locks or threads."""

    def after_fork(self) -> None:
        """In the child: forget them, without closing anything; the next call opens what it needs."""


PATIENCE = 10.0  # seconds that a fork waits for a write to end

_known: WeakKeyDictionary[Forked, str] = WeakKeyDictionary()
_taken: list[Lock] = []  # by the fork that is under way


def register(holder: Forked, *, lock: str = "") -> None:
    """Call its after_fork() in every child of this process, as long as it lives.

    `lock` names an attribute: no fork happens while another thread holds that lock, so that the child inherits nothing
    half-done.
    """
    _known[holder] = lock


def abandon(inherited: object) -> None:
    """Keep something from ever being collected: its end would close a connection that the parent still uses."""
    if inherited is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _before() -> None:
    locks = [getattr(holder, name) for holder, name in list(_known.items()) if name]
    _taken.extend(lock for lock in locks if lock.acquire(timeout=PATIENCE))


def _after_in_parent() -> None:
    while _taken:
        _taken.pop().release()


def _after_in_child() -> None:
    _taken.clear()
    for holder in list(_known):
        holder.after_fork()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
