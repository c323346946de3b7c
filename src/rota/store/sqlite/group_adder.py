"""Adds the single jobs of threads that enqueue at the same time in one transaction.

A file has one writer at a time, and every commit waits for the disk. The first thread writes its job at once. Jobs that
other threads add meanwhile wait, and the next transaction adds all of them. A thread that adds jobs alone never waits.
Each caller returns when its own job is committed, or raises its own error.
"""

from __future__ import annotations

import logging
import threading
from copy import copy
from threading import get_ident
from typing import TYPE_CHECKING

from rota.errors import StoreSealed, StoreUnavailable
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import NewJob
    from rota.store.contract import Added

log = logging.getLogger("rota.store.sqlite")

MOST = 50  # jobs in one transaction: their payloads may be large


class _Caller:
    """A thread that adds a job. `turn` is free when the job was written, or when the thread has a group to write."""

    __slots__ = ("added", "error", "group", "new", "turn")

    def __init__(self, new: NewJob) -> None:
        self.new = new
        self.turn = threading.Lock()
        self.group: list[_Caller] = []  # what this thread writes; its own job is the first
        self.added: Added | None = None
        self.error: Exception | None = None


class GroupAdder(forks.Forked):
    """Adds single jobs of any thread; `add_jobs` writes jobs in a transaction of their own."""

    def __init__(self, add_jobs: Callable[[Sequence[NewJob]], list[Added]]) -> None:
        self._add_jobs = add_jobs
        self.after_fork()
        forks.register(self)

    def after_fork(self) -> None:
        """In a child: the threads that were adding jobs are not there."""
        self._lock = threading.Lock()
        self._writer: _Caller | None = None
        self._waiting: list[_Caller] = []
        self._inside: set[int] = set()  # threads that are in add()

    def add(self, new: NewJob) -> list[Added]:
        """Add one job that says no more than its own fields, so that it can be refused by no other job."""
        thread = get_ident()
        if thread in self._inside:  # a signal handler, or a log handler, must not wait for its own thread
            return self._add_jobs([new])
        caller = _Caller(new)
        self._inside.add(thread)
        try:
            self._enter(caller)
            with caller.turn:
                self._write(caller.group)
        finally:  # also after an interrupt, wherever it came: the other callers go on
            self._leave(caller)
            self._inside.discard(thread)
        if caller.error is not None:
            raise copy(caller.error) from caller.error  # the other callers of the group raise it, too
        # If the group was committed although its writer was interrupted, the id is there: it is not added twice.
        return self._add_jobs([new]) if caller.added is None else [caller.added]

    def _enter(self, caller: _Caller) -> None:
        """Write at once if no other thread writes; else wait."""
        with self._lock:
            if self._writer is None:
                self._writer = caller
                caller.group = [caller]
                return
            caller.turn.acquire()
            self._waiting.append(caller)

    def _write(self, group: list[_Caller]) -> None:
        """Write the jobs of a group. A store that is away or sealed fails them all; after another fault, each caller
        writes its own, and meets the fault if it is that of its job."""
        if len(group) == 1:
            (group[0].added,) = self._add_jobs([group[0].new])
            return
        try:
            answers = self._add_jobs([caller.new for caller in group]) if group else []
        except (StoreUnavailable, StoreSealed) as err:
            for caller in group:
                caller.error = err
        except Exception as err:  # noqa: BLE001 - the caller whose job is at fault meets it again
            log.debug("%d jobs are added one by one: %s", len(group), err)
        else:
            for caller, added in zip(group, answers, strict=True):
                caller.added = added

    def _leave(self, caller: _Caller) -> None:
        """If the caller was the one that writes: the first that waits writes next, for all that wait."""
        with self._lock:
            if caller in self._waiting:
                self._waiting.remove(caller)
            if self._writer is not caller:
                return
            following, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            self._writer = following[0] if following else None
            if following:
                following[0].group = following
        for other in (*following[:1], *caller.group[1:]):
            other.turn.release()
