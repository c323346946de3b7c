"""The desk: one exchange with a worker on a server without transactions, in two round trips.

What the worker has done is written first, and with the same message it is asked who waited for that and what there is
to claim now. The second message claims. It waits for the journal, which holds all that was written before; the counters
go along behind it. A worker that only wants work looks first, and most often finds none.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from rota.failpoints import reach
from rota.model.state import State
from rota.store.contract import Exchanged
from rota.store.mongo import counters, notify
from rota.store.mongo.claiming import Question
from rota.store.mongo.guards import held_by
from rota.store.mongo.settling import parts_of
from rota.store.mongo.steps import Step
from rota.store.mongo.wire import QUICK, SAFE, number_of, updating

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.settle import Change
    from rota.store.contract import Exchange, Refusal
    from rota.store.mongo.claiming import Claimed, Claimer, Sight
    from rota.store.mongo.connection import Connection
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.head import Head
    from rota.store.mongo.settling import Settler
    from rota.store.mongo.space import Document
    from rota.store.mongo.wire import Command

SOON = 200_000  # microseconds: what is due so soon is claimed while the gate is still open, if it is opened now


class Settled(NamedTuple):
    """What became of a worker's reports, what is to be counted, and what there is to claim after that."""

    refused: list[Refusal]
    counts: list[Command]  # goes along with whatever is written next
    sight: Sight | None  # None: must be looked at again


class Desk:
    """Exchanges with workers of one namespace."""

    def __init__(self, connection: Connection, head: Head, settler: Settler, claimer: Claimer, rows: Counters) -> None:
        self._connection = connection
        self._head = head
        self._settler = settler
        self._claimer = claimer
        self._rows = rows

    def exchange(self, ask: Exchange, now: int | None) -> Exchanged:
        sight = None if ask.settled else self._claimer.survey(ask, now)
        if sight is not None and not sight.has_work:
            if sight.is_due_within(SOON):
                self._head.gate.open()
            return Exchanged(now=sight.now, next_due_at=sight.next_due_at)
        with self._head.gate.pass_through():
            settled = self._settle(ask, now) if ask.settled else Settled([], [], sight)
            got = self._claim(ask, now, settled)
        reach("exchange.after_commit")
        return Exchanged(now=got.now, refused=settled.refused, claimed=got.jobs, next_due_at=got.next_due_at)

    def _claim(self, ask: Exchange, now: int | None, settled: Settled) -> Claimed:
        got = self._claimer.claim(ask, self._claimer.open_queues(ask), now, settled.sight, settled.counts)
        if ask.settled and not got.jobs:
            flush = {"q": {"_id": "flush"}, "u": {"$inc": {"n": 1}}, "upsert": True}
            self._connection.wire.update(self._connection.space.meta, [flush], SAFE, settled.counts)
        return got

    def _settle(self, ask: Exchange, now: int | None) -> Settled:
        """Write reports where they still hold, and do what follows from them."""
        at = self._head.gate.now() if now is None else now
        step = Step(self._connection.quick, None)
        if len({change.id for change in ask.settled}) != len(ask.settled):
            refused = self._settler.settle(step, ask.settled, at, held_by(ask.holder))
            return Settled(refused, self._count(step), self._claimer.look_now(ask, now))
        token = secrets.token_hex(8)
        question = Question.of(ask, self._claimer.open_queues(ask), now)
        written, waiting, seen = self._write(ask, question, token)
        accepted = self._settler.taken(step, ask.settled, token, number_of(written))
        refused = self._refused(step, ask, accepted)
        self._settler.follow(step, accepted, at, waiting=waiting)
        sight = self._claimer.seen(seen, question)
        is_so = self._claimer.learn(sight) and waiting == []
        return Settled(refused, self._count(step), sight if is_so else None)

    def _write(self, ask: Exchange, question: Question, token: str) -> tuple[Document, list[Document] | None, Document]:
        """What the server says to the reports; who waited for those that ended (None: more than can be told); and
        what there is to claim."""
        space = self._connection.space
        over = [change.id for change in ask.settled if change.state.is_final]
        reports = updating(space.jobs, parts_of(ask.settled, held_by(ask.holder), token), QUICK)
        look = self._claimer.looking(question)
        reach("exchange.before_commit")
        if not over:
            written, seen = self._connection.wire.ask(reports, look)
            return written, [], seen
        written, held, seen = self._connection.wire.ask(reports, self._settler.waiters.looking(space, over), look)
        return written, None if held["cursor"]["id"] else held["cursor"]["firstBatch"], seen

    def _refused(self, step: Step, ask: Exchange, accepted: Sequence[Change]) -> list[Refusal]:
        if len(accepted) == len(ask.settled):
            return []
        taken = {change.id for change in accepted}
        rest = [change for change in ask.settled if change.id not in taken]
        return self._settler.refusals(step, rest, held_by(ask.holder))

    def _count(self, step: Step) -> list[Command]:
        """What has to be counted; and others are woken, where some job can go on."""
        if step.counts.grew(State.QUEUED, State.SCHEDULED):
            notify.send(self._connection, "jobs")
        updates = self._rows.updates(step.counts)
        return [counters.command(self._connection.space, updates)] if updates else []
