"""Steps: several writes as one. A transaction where the server has them; elsewhere writes in an order that is safe.

On a standalone server the writes of a step are answered from memory, and the last one waits for the journal, which
holds them in order: once it is answered, all of them are safe. A process that dies between them leaves a step half
done; what that can look like, and who finishes it, is said in `outbox` (firings and edits) and in `settling`.

Counters are written after a transaction, not inside: their rows are shared by everybody, and a client that died in its
transaction would keep them from all. Where two transactions touch the same documents, the later one is tried again for
as long as its verb has time, or for as long as it has `patience`.

Some steps are loose on every server: one write decides everything, and what follows is only counted. A transaction
would add nothing there but its price, which is high for many jobs (servers look up each index anew for each document).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from pymongo import ReadPreference
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from rota.failpoints import reach
from rota.store.mongo import counters
from rota.store.mongo.faults import is_conflict
from rota.store.mongo.space import DURABLE
from rota.store.shared.counting import Counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pymongo.client_session import ClientSession

    from rota.store.mongo.connection import Connection
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.space import Space

Result = TypeVar("Result")


class Contended(Exception):
    """What a transaction wants to write has been written in another one, which is not over."""


class Step:
    """What one step's writes have in common."""

    def __init__(self, space: Space, session: ClientSession | None) -> None:
        self.space = space
        self.session = session
        self.counts = Counts()

    @property
    def is_atomic(self) -> bool:
        return self.session is not None


class Steps:
    """Runs steps in the way that the server allows."""

    def __init__(self, connection: Connection, rows: Counters) -> None:
        self._connection = connection
        self._rows = rows

    def run(
        self,
        verb: str,
        work: Callable[[Step], Result],
        *,
        is_last: bool = True,
        is_loose: bool = False,
        patience: float | None = None,
    ) -> Result:
        """Do the work and count it. `is_last=False`: the caller's next write is a durable one, or it calls flush()."""
        if self._connection.has_transactions and not is_loose:
            result = self._in_transaction(verb, work, patience)
        else:
            result = self._in_order(verb, work, is_last=is_last)
        reach(f"{verb}.after_commit")
        return result

    def count_soon(self, counts: Counts) -> None:
        """Count what has been written, without waiting for it."""
        space = self._connection.space
        self._connection.wire.tell(counters.command(space, self._rows.updates(counts)))

    def flush(self) -> None:
        """Have everything written so far in the journal."""
        if not self._connection.has_transactions:
            self._connection.space.meta.update_one({"_id": "flush"}, {"$inc": {"n": 1}}, upsert=True)

    def _in_transaction(self, verb: str, work: Callable[[Step], Result], patience: float | None) -> Result:
        give_up_at = None if patience is None else time.monotonic() + patience
        step = Step(self._connection.space, None)

        def attempt(session: ClientSession) -> Result:
            nonlocal step
            step = Step(self._connection.space, session)
            try:
                result = work(step)
            except PyMongoError as err:
                if is_conflict(err) and give_up_at is not None and time.monotonic() > give_up_at:
                    raise Contended from err
                raise
            reach(f"{verb}.before_commit")
            return result

        with self._connection.session() as session:
            result = session.with_transaction(
                attempt,
                read_concern=ReadConcern("snapshot"),
                write_concern=DURABLE,
                read_preference=ReadPreference.PRIMARY,
            )
        counters.write(self._connection.quick, self._rows.updates(step.counts))
        return result

    def _in_order(self, verb: str, work: Callable[[Step], Result], *, is_last: bool) -> Result:
        """Where members take over from each other, a later write does not cover an earlier one: each is durable."""
        is_alone = not self._connection.has_transactions
        step = Step(self._connection.quick if is_alone else self._connection.space, None)
        result = work(step)
        reach(f"{verb}.before_commit")
        updates = self._rows.updates(step.counts)
        if updates:
            counters.write(self._connection.space if is_last and is_alone else self._connection.quick, updates)
        elif is_last:
            self.flush()
        return result
