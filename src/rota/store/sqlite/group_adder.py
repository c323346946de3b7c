"""Adds the single jobs of threads that enqueue at the same time in one transaction.

A file has one writer at a time, and every commit waits for the disk. The first thread writes its job at once. Jobs that
other threads add meanwhile wait, and the next transaction adds all of them. A thread that adds jobs alone never waits.
Each caller returns when its own job is committed, or raises its own error.
"""

from __future__ import annotations

import logging
import threading
from threading import get_ident
from typing import TYPE_CHECKING

from rota.errors import StoreError
from rota.store.contract import Added
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.jobs.job import NewJob

log = logging.getLogger("rota.store.sqlite")

MOST = 50  # jobs in one transaction: their payloads may be large


class _Caller:
    """A thread whose job waits. `turn` is released when the job was written, or when it has a group to write."""

    __slots__ = ("error", "group", "is_added", "new", "turn")

    def __init__(self, new: NewJob) -> None:
        self.new = new
        self.turn = threading.Lock()
        self.turn.acquire()
        self.group: list[_Caller] = []  # what this thread writes; its own job is the first
        self.is_added = False
        self.error: StoreError | None = None


class GroupAdder(forks.Forked):
    """Adds single jobs of any thread; `add_jobs` writes jobs in a transaction of their own."""

    def __init__(self, add_jobs: Callable[[Sequence[NewJob]], list[Added]]) -> None:
        self._add_jobs = add_jobs
        self.after_fork()
        forks.register(self)

    def after_fork(self) -> None:
        """In a child: the threads that were adding jobs are not there."""
        self._lock = threading.Lock()
        self._is_busy = False  # a thread writes
        self._waiting: list[_Caller] = []
        self._inside: set[int] = set()  # threads that are in add()

    def add(self, new: NewJob) -> list[Added]:
        """Add one job that says no more than its own fields, so that it can be refused by no other job."""
        thread = get_ident()
        if thread in self._inside:  # a signal handler, or a log handler, must not wait for its own thread
            return self._add_jobs([new])
        self._inside.add(thread)
        try:
            caller = self._enter(new)
            return self._add_first(new) if caller is None else self._add_grouped(caller)
        finally:
            self._inside.discard(thread)

    def _enter(self, new: NewJob) -> _Caller | None:
        """The caller that must wait; None if no other thread writes."""
        with self._lock:
            if not self._is_busy:
                self._is_busy = True
                return None
            caller = _Caller(new)
            self._waiting.append(caller)
            return caller

    def _add_first(self, new: NewJob) -> list[Added]:
        try:
            return self._add_jobs([new])
        finally:
            self._pass_on()

    def _add_grouped(self, caller: _Caller) -> list[Added]:
        try:
            caller.turn.acquire()
            if caller.group:
                self._write(caller.group)
        except BaseException:  # such as KeyboardInterrupt: the other callers go on
            self._forget(caller)
            raise
        finally:
            self._end(caller)
        if caller.error is not None:
            raise caller.error
        if not caller.is_added:
            self._add_jobs([caller.new])  # if the group was committed after all, its id is there: it is not added twice
        return [Added(caller.new.id)]

    def _write(self, group: list[_Caller]) -> None:
        """Write the jobs of a group. A fault of the store is everyone's. After another, each caller writes its own."""
        try:
            self._add_jobs([caller.new for caller in group])
        except StoreError as err:
            for caller in group:
                caller.error = err
        except Exception as err:  # noqa: BLE001 - the caller whose job is at fault meets it again
            log.debug("%d jobs are added one by one: %s", len(group), err)
        else:
            for caller in group:
                caller.is_added = True

    def _end(self, caller: _Caller) -> None:
        """If the caller had a group to write: have the next one written, and wake its callers."""
        group, caller.group = caller.group, []
        if group:
            self._pass_on()
        for other in group[1:]:
            other.turn.release()

    def _pass_on(self) -> None:
        """A transaction has ended: the first thread that waits writes the next one, for all that wait."""
        with self._lock:
            group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            if not group:
                self._is_busy = False
                return
            group[0].group = group
        group[0].turn.release()

    def _forget(self, caller: _Caller) -> None:
        with self._lock:
            if caller in self._waiting:
                self._waiting.remove(caller)
