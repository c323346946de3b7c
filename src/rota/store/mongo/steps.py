"""Runs several writes as one step: in a transaction if the server has them, else in an order that is safe.

On a standalone server the writes of a step are answered from memory, and the last one waits for the journal. The
journal keeps the order, so all of them are durable then. A process that dies between two writes leaves a step half
done; `outbox` and `changing` say what that looks like and who finishes it.

Counters are written after a transaction, not inside: all processes share their rows, and a client that died in its
transaction would lock them for everybody. If two transactions write the same document, the later one is tried again
until the verb's deadline, or for as long as its `patience` says.

A step with `is_atomic=False` uses no transaction on any server: one write decides everything, and the rest is only
counted. A transaction would cost much for many jobs: servers look up each index again for each document.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from pymongo import ReadPreference
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from rota.failpoints import reach
from rota.store.mongo.database import DURABLE, Database
from rota.store.mongo.faults import is_conflict
from rota.store.mongo.time_slices import TimeSlices
from rota.store.shared.changing import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pymongo.client_session import ClientSession

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.control import ControlDocument, Turn
    from rota.store.mongo.counters import Counters

Result = TypeVar("Result")


class Contended(Exception):
    """Another transaction, which has not ended, has written what this one wants to write."""


class Step(Database):
    """The collections for the calls of one step, and the jobs that it adds to or takes off each counter."""

    def __init__(self, db: Database, slices: TimeSlices, session: ClientSession | None = None) -> None:
        super().__init__(db.raw, session)
        self.slices = slices
        self.counts = Counts()


class Steps:
    """Begins verbs of one namespace, and runs their steps."""

    def __init__(self, connection: Connection, control: ControlDocument, counters: Counters) -> None:
        self.connection = connection
        self.control = control
        self._counters = counters
        self._slices = TimeSlices()

    @contextmanager
    def work(self, now: int | None, queue: str | None = None) -> Iterator[Turn]:
        """A verb that adds or claims work, or changes waiting jobs: it is refused if the store is sealed. With a queue,
        its turn may have counted a new job of that queue already."""
        with self.connection.call(), self.control.work(now, queue) as turn:
            yield turn

    def run(
        self, verb: str, work: Callable[[Step], Result], *, is_atomic: bool = True, patience: float | None = None
    ) -> Result:
        """Do the work as one step, and count it."""
        if self.connection.has_transactions and is_atomic:
            result, step = self._in_transaction(verb, work, patience)
        else:
            db = self.connection.db if self.connection.has_transactions else self.connection.quick
            step = Step(db, self._slices)
            try:
                result = work(step)
            except Exception:
                with suppress(PyMongoError):
                    self._counters.write(self.connection.quick, step.counts)  # as far as it came
                raise
            reach(f"{verb}.before_commit")
        self.count(step.counts)
        reach(f"{verb}.after_commit")
        return result

    def count(self, counts: Counts) -> None:
        """Count what was written. On a standalone server this also makes durable what was written before."""
        is_alone = not self.connection.has_transactions
        is_written = self._counters.write(self.connection.db if is_alone else self.connection.quick, counts)
        if is_alone and not is_written:
            self.connection.db.meta.update_one({"_id": "flush"}, {"$inc": {"number": 1}}, upsert=True)

    def _in_transaction(self, verb: str, work: Callable[[Step], Result], patience: float | None) -> tuple[Result, Step]:
        give_up_at = None if patience is None else time.monotonic() + patience

        def attempt(session: ClientSession) -> tuple[Result, Step]:
            step = Step(self.connection.db, self._slices, session)
            try:
                result = work(step)
            except PyMongoError as err:
                if is_conflict(err) and give_up_at is not None and time.monotonic() > give_up_at:
                    raise Contended from err
                raise
            reach(f"{verb}.before_commit")
            return result, step

        with self.connection.session() as session:
            return session.with_transaction(
                attempt,
                read_concern=ReadConcern("snapshot"),
                write_concern=DURABLE,
                read_preference=ReadPreference.PRIMARY,
            )
