"""Lets a forked process open a store again by itself: what its parent opened is not its own.

A web server that loads an app and then forks its workers (gunicorn with --preload) leaves each of them connections that
all share, locks that no thread will free, and threads that are not there.
"""

from __future__ import annotations

import ctypes
import os
import threading
from abc import ABC, abstractmethod
from typing import Protocol
from weakref import WeakKeyDictionary


class Lock(Protocol):
    def release(self) -> None: ...


class Forked(ABC):
    """An object that holds connections, locks or threads."""

    def before_fork(self) -> Lock | None:
        """In the parent: end what a child must not inherit. The lock is released there after the fork."""
        return None

    @abstractmethod
    def after_fork(self) -> None:
        """In the child: forget them, without closing anything; the next call opens what it needs."""


class _Taken(threading.local):
    """The locks of the fork that this thread does; two threads may fork at once."""

    def __init__(self) -> None:
        self.locks: list[Lock] = []


_known: WeakKeyDictionary[Forked, None] = WeakKeyDictionary()  # its order keeps two forks from blocking each other
_taken = _Taken()


def register(holder: Forked) -> None:
    """Call its before_fork() and after_fork() at every fork of this process, as long as it lives."""
    _known[holder] = None


def abandon(inherited: object) -> None:
    """Keep something from ever being collected: its end would close a connection that the parent still uses."""
    if inherited is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _before() -> None:
    for holder in list(_known):
        lock = holder.before_fork()
        if lock is not None:
            _taken.locks.append(lock)


def _after_in_parent() -> None:
    while _taken.locks:
        _taken.locks.pop().release()


def _after_in_child() -> None:
    _taken.locks.clear()
    for holder in list(_known):
        holder.after_fork()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
