"""Adds jobs: all or none, and under their unique keys; single jobs of several threads in one transaction.

A file has one writer at a time, and every commit waits for the disk. The first thread that adds a job writes it at
once. Jobs that other threads add meanwhile wait, and the next transaction adds all of them. A thread that adds jobs
alone never waits. Each caller returns when its own job is committed, or raises its own error.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from copy import copy
from threading import get_ident
from typing import TYPE_CHECKING, Any

from rota.errors import StoreSealed, StoreUnavailable
from rota.model.jobs.job import OWN_FIELDS, Job, NewJob, State, accept, can_use_fast_path, holds_key
from rota.store.contract import Added
from rota.store.shared import forks
from rota.store.sqlite.block_index import blocks_of
from rota.store.sqlite.codec import JOB_FIELDS, NEW_FIELDS, row_of_new_job
from rota.store.sqlite.transaction import Insert

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from rota.store.sqlite.transaction import Transaction, Transactions

log = logging.getLogger("rota.store.sqlite")

MOST_GROUPED = 50  # jobs in one transaction: their payloads may be large


class Adder:
    """Adds jobs to one namespace."""

    def __init__(self, namespace: str, transactions: Transactions) -> None:
        self._transactions = transactions
        self._name = f"{namespace}_job"
        self._insert = Insert(self._name, NEW_FIELDS, "?" * len(NEW_FIELDS))
        self._insert_plain, self._times = _insert_plain(self._name)
        self._group_adder = GroupAdder(self._add_plain)

    def add_jobs(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        if len(jobs) == 1 and now is None and can_use_fast_path(jobs[0]):
            return self._group_adder.add(jobs[0])
        return self._add_jobs(jobs, now)

    def _add_plain(self, jobs: Sequence[NewJob]) -> list[Added]:
        """Add jobs that can use the fast path."""
        with self._transactions.work("add") as tx:
            tx.notify("jobs")
            if len(jobs) == 1:
                return self._add_one_plain(tx, jobs[0])
            return self._add_all_plain(tx, jobs)

    def _add_jobs(self, jobs: Sequence[NewJob], now: int | None = None) -> list[Added]:
        with self._transactions.work("add", now) as tx:
            tx.notify("jobs")
            return self.add(tx, jobs)

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        with self._transactions.guest(transaction, is_work=True) as tx:
            tx.notify("jobs")
            return self.add(tx, jobs)

    def add(self, tx: Transaction, jobs: Sequence[NewJob]) -> list[Added]:
        """Insert jobs; those whose slot or key is taken answer with the job that has it."""
        if all(map(can_use_fast_path, jobs)):
            return self._add_all_plain(tx, jobs)
        if any(new.key or new.slot or new.waits_for for new in jobs):
            are_in = False
        else:
            are_in = self.insert(tx, [accept(new, tx.now) for new in jobs])
        if are_in:
            return [Added(new.id) for new in jobs]
        return [self._add_one(tx, new) for new in jobs]

    def _add_one_plain(self, tx: Transaction, new: NewJob) -> list[Added]:
        """As add, for the most common call by far."""
        row = (new.id, new.task, new.payload, new.queue, new.priority, *(tx.now,) * self._times)
        position = self._insert_plain.one(tx.connection, row)
        if position is None:
            return [self._add_one(tx, new)]
        tx.blocks.add_one(tx.connection, (new.queue, new.task), tx.now, position)
        tx.counts.add(new.queue, State.QUEUED)
        return [Added(new.id)]

    def _add_all_plain(self, tx: Transaction, jobs: Sequence[NewJob]) -> list[Added]:
        if self._insert_all_plain(tx, jobs):
            return [Added(new.id) for new in jobs]
        return [self._add_one(tx, new) for new in jobs]

    def _insert_all_plain(self, tx: Transaction, jobs: Sequence[NewJob]) -> bool:
        """As insert, for the most common jobs by far: only what they differ in is bound."""
        times = (tx.now,) * self._times
        rows = [(new.id, new.task, new.payload, new.queue, new.priority, *times) for new in jobs]
        positions = self._insert_plain.all_or_none(tx.connection, rows)
        if positions is None:
            return False
        kinds = {(new.queue, new.task) for new in jobs}
        tx.blocks.add_kinds(tx.connection, kinds, positions)
        tx.blocks.add_times(tx.connection, (tx.now,), positions)
        if len(kinds) == 1:  # most batches, and every single job
            tx.counts.add(jobs[0].queue, State.QUEUED, len(jobs))
            return True
        for queue, number in Counter(new.queue for new in jobs).items():
            tx.counts.add(queue, State.QUEUED, number)
        return True

    def _add_one(self, tx: Transaction, new: NewJob) -> Added:
        """Insert a job unless it is there already, by its id, its slot or its key."""
        if self._state_of(tx.connection, new.id) is not None:
            return Added(new.id, existed=True)
        taken = self.slot_holder(tx.connection, new.slot) or self.key_holder(tx, new.key)
        if taken:
            return Added(taken, existed=True)
        awaited = self._state_of(tx.connection, new.waits_for) if new.waits_for else None
        must_wait = awaited is not None and not awaited.is_final
        self.insert(tx, [accept(new, tx.now, must_wait=must_wait)])
        return Added(new.id)

    def insert(self, tx: Transaction, jobs: Sequence[Job]) -> bool:
        """Insert jobs, all or, if one of them is there already, none."""
        positions = self._insert.all_or_none(tx.connection, [row_of_new_job(job) for job in jobs])
        if positions is None:
            return False
        tx.blocks.add_kinds(tx.connection, {(job.queue, job.task) for job in jobs}, positions)
        tx.blocks.add_times(tx.connection, {job.created_at for job in jobs}, positions)
        if any(job.state is State.SUCCEEDED for job in jobs):
            tx.blocks.add_successes(tx.connection, blocks_of(positions))
        tx.counts.add_all(jobs)
        return True

    def _state_of(self, connection: sqlite3.Connection, job_id: str) -> State | None:
        row = connection.execute(f"SELECT state FROM {self._name} WHERE id = ?", (job_id,)).fetchone()
        return State(row[0]) if row else None

    def slot_holder(self, connection: sqlite3.Connection, slot: str | None) -> str | None:
        """The live job in a schedule's overlap slot."""
        if slot is None:
            return None
        row = connection.execute(f"SELECT id FROM {self._name} WHERE slot = ?", (slot,)).fetchone()
        return str(row[0]) if row else None

    def key_holder(self, tx: Transaction, key: str | None) -> str | None:
        """The job that has a key; a key that only held for a period is free once that is over."""
        if not key:
            return None
        query = f"SELECT seq, id, state, key_until FROM {self._name} WHERE key = ?"
        row = tx.connection.execute(query, (key,)).fetchone()
        if row is None:
            return None
        seq, job_id, state, key_until = row
        if holds_key(State(state), key_until, tx.now):
            return str(job_id)
        tx.connection.execute(f"UPDATE {self._name} SET key = NULL WHERE seq = ?", (seq,))
        return None


def _insert_plain(table: str) -> tuple[Insert, int]:
    """The statement for plain requests, and how often it has their time behind their own fields.

    What the model makes of all of them alike stands in it as it is.
    """
    sample = NewJob(id="", task="", payload=b"")
    one, two = accept(sample, 1), accept(sample, 2)
    values = dict.fromkeys(OWN_FIELDS, "?")
    for field in JOB_FIELDS:
        value = getattr(one, field)
        if field in values or field == "seq" or value is None:
            continue
        values[field] = "?" if value != getattr(two, field) else _literal(value)
    bound = sum(value == "?" for value in values.values())
    return Insert(table, list(values), list(values.values())), bound - len(OWN_FIELDS)


def _literal(value: Any) -> str:
    """A constant of the model as SQL writes it."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


class _Caller:
    """A thread that adds a job. `turn` is free when the job was written, or when the thread has a group to write."""

    __slots__ = ("added", "error", "following", "has_left", "is_writer", "new", "others", "turn")

    def __init__(self, new: NewJob) -> None:
        self.new = new
        self.turn: threading.Lock | None = None  # of a thread that has to wait
        self.is_writer = False
        self.others: Sequence[_Caller] = ()  # whose jobs this thread writes with its own
        self.following: Sequence[_Caller] = ()  # what the next thread writes
        self.has_left = False
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
        try:
            self._inside.add(thread)
            self._enter(caller)
            if caller.turn is not None:
                caller.turn.acquire()
            if caller.is_writer:
                self._write(caller)
        finally:  # also after an interrupt, wherever it came: the other callers go on
            try:
                self._leave(caller)
            finally:
                if not caller.has_left:  # it was interrupted
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
                caller.is_writer = True
                return
            caller.turn = threading.Lock()
            caller.turn.acquire()
            self._waiting.append(caller)

    def _write(self, caller: _Caller) -> None:
        """Write the jobs of a group. A store that is away or sealed fails them all; after another fault, each caller
        writes its own, and meets the fault if it is that of its job."""
        if not caller.others:
            (caller.added,) = self._add_jobs([caller.new])
            return
        group = [caller, *caller.others]
        try:
            answers = self._add_jobs([one.new for one in group])
        except (StoreUnavailable, StoreSealed) as err:
            for one in group:
                one.error = err
        except Exception as err:  # noqa: BLE001 - the caller whose job is at fault meets it again
            log.debug("%d jobs are added one by one: %s", len(group), err)
        else:
            for one, added in zip(group, answers, strict=True):
                one.added = added

    def _leave(self, caller: _Caller) -> None:
        """If the caller was the one that writes: the first that waits writes next, for all that wait. An interrupt may
        come at every call; the steps between are done together, and a second call does the rest."""
        with self._lock:
            if self._writer is caller:
                following, self._waiting = self._waiting[:MOST_GROUPED], self._waiting[MOST_GROUPED:]
                caller.following = following
                self._writer = following[0] if following else None
                if following:
                    following[0].is_writer, following[0].others = True, following[1:]
            elif caller in self._waiting:  # it was interrupted
                self._waiting.remove(caller)
        for other in (*caller.following[:1], *caller.others):
            if other.turn is not None and other.turn.locked():
                other.turn.release()
        caller.has_left = True
