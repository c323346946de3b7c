"""MongoStore: the contract on one database of a MongoDB server. Each verb is one step; the parts do the work.

Where the server has transactions (a replica set, a cluster), a step is one. A standalone server has none: there a step
is several writes in a safe order, and what a crash can leave between them is said in `outbox`, `settling`, `removing`
and `counters`, with who finishes it. A batch of added jobs is one insert: a server that dies within it may keep a first
part, which nobody was told of and which a repeated call completes.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from pymongo import MongoClient, ReturnDocument
from pymongo.errors import BulkWriteError

from rota.errors import StoreUnavailable
from rota.failpoints import reach
from rota.model.micros import SECOND
from rota.model.names import check_namespace
from rota.model.state import State
from rota.store.contract import (
    Added,
    Due,
    Exchange,
    Exchanged,
    Extended,
    Features,
    Fired,
    JobFilter,
    LogLine,
    Node,
    Page,
    Pruned,
    QueueInfo,
    Refusal,
    Retention,
    ScheduleFilter,
    Store,
)
from rota.store.mongo import notify, schema
from rota.store.mongo.adding import Intake, all_added
from rota.store.mongo.claiming import Claimer, Question, open_queues
from rota.store.mongo.connection import Connection
from rota.store.mongo.contention import PAUSE, Contention
from rota.store.mongo.counters import Counters
from rota.store.mongo.desk import Desk
from rota.store.mongo.gate import MS
from rota.store.mongo.guards import has_lapsed, held_by, is_same
from rota.store.mongo.head import NOW, Head, paused_of
from rota.store.mongo.jobs import Jobs, is_duplicate
from rota.store.mongo.judging import Judges
from rota.store.mongo.leases import Leases
from rota.store.mongo.ledger import Ledger
from rota.store.mongo.lists import Lists
from rota.store.mongo.locks import Locks
from rota.store.mongo.logs import Logs
from rota.store.mongo.moving import Mover
from rota.store.mongo.outbox import Postman
from rota.store.mongo.parking import Parker
from rota.store.mongo.records import Entries, Notes
from rota.store.mongo.removing import Remover
from rota.store.mongo.schedules import Schedules
from rota.store.mongo.settling import Settler
from rota.store.mongo.steps import Step, Steps
from rota.store.mongo.upkeep import Upkeep
from rota.store.shared import forks
from rota.store.shared.matching import check_cursor
from rota.store.shared.unpacking import node_from

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.edit import Edit
    from rota.model.entry import Entry, EntryEdit
    from rota.model.firing import Firing
    from rota.model.job import Job, NewJob
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.model.settle import Change
    from rota.store.contract import AuditFilter, Channel, Listener, Part, Record, Seal
    from rota.store.mongo.space import Document, Space

FINISH_AT_ONCE = 100  # half-done steps of others that one look at lapsed jobs finishes


class MongoStore(Store, forks.Forked):
    """One namespace of one database. `where` is a URL, or a client of the user's, which is never closed."""

    features = Features(kind="mongo", is_durable=True, is_shared=True, counters_are_exact=False, clock_step=MS)

    def __init__(
        self, where: str | MongoClient[Document], *, namespace: str = "rota", database: str | None = None
    ) -> None:
        self.namespace = check_namespace(namespace)
        self._given = (where, self.namespace, database)
        self._connection = Connection(*self._given)
        self._counters = Counters()
        self._steps = Steps(self._connection, self._counters)
        self._head = Head(self._connection, self.describe())
        self._ledger, self._logs, self._locks, self._leases, self._jobs = Ledger(), Logs(), Locks(), Leases(), Jobs()
        self._lists = Lists(self._connection)
        self._remover = Remover(self._ledger, self._logs)
        self._settler = Settler(self._jobs, self._remover)
        self._notes = Notes()
        self._entries = Entries(self._notes)
        postman = Postman(self._jobs, self._settler, self._ledger, self._leases, self._remover, self._notes)
        self._schedules = Schedules(self._jobs, postman, self._steps, self._head.mark)
        self._contention = Contention(self._steps, self._schedules)
        self._parker = Parker(self._steps)
        self._judges = Judges(self._jobs, self._schedules, postman, self._ledger, self._logs, self._settler.waiters)
        self._intake = Intake(self._connection, self._head.gate, self._counters)
        self._claimer = Claimer(self._connection, self._steps, self._parker, self._head, self._judges)
        self._desk = Desk(self._connection, self._head, self._settler, self._claimer, self._counters)
        self._upkeep = Upkeep(
            *(self._steps, self._settler, self._schedules, self._remover, self._ledger, self._counters),
            *(self._judges, self._entries, self._notes),
        )
        self._mover = Mover(
            *(self._steps, self._jobs, self._lists, self._schedules, self._ledger, self._logs, self._locks),
            *(self._entries, self._notes),
        )

        forks.register(self)

    def after_fork(self) -> None:
        self._connection.after_fork()
        self._head.gate.reset()

    def open(self) -> None:
        self._connection.open()
        self._head.gate.reset()
        try:
            with self._connection.call() as space:
                schema.migrate(space)
        except BaseException:
            self._connection.close()
            raise

    def pending_migrations(self) -> list[str]:
        return self._visit(schema.pending)

    def namespaces(self) -> list[str]:
        return self._visit(schema.namespaces)

    def _visit(self, look: Callable[[Space], list[str]]) -> list[str]:
        connection = Connection(*self._given)
        connection.open()
        try:
            with connection.call() as space:
                return look(space)
        finally:
            connection.close()

    def close(self) -> None:
        self._head.gate.close()
        self._connection.close()

    def describe(self) -> str:
        return f"{self._connection.where}, namespace {self.namespace}"

    def now(self) -> int:
        with self._connection.call() as space:
            return self._head.now(space, None)

    def listen(self, channel: Channel) -> Listener:
        return notify.MongoListener(self._connection, channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        return self._add_plain(jobs, now) if self._intake.takes(jobs) else self._add(jobs, now, set())

    def _add_plain(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        with self._connection.call():
            made = self._intake.add(jobs, now)
        return all_added(jobs) if made is None else self._add(jobs, now, made)

    def _add(self, jobs: Sequence[NewJob], now: int | None, made: set[str]) -> list[Added]:
        """Look first: some have keys, wait for others, or are there already."""
        with self._connection.call(), self._head.work(now) as turn:

            def add(step: Step, *, is_careful: bool) -> list[Added]:
                added = self._jobs.add(step, jobs, turn.now, made, is_careful=is_careful)
                if not step.is_atomic:  # they can be claimed already; the counters, and the journal, come after that
                    notify.send(self._connection, "jobs")
                return added

            try:
                added = self._steps.run("add", partial(add, is_careful=bool(made)))
            except BulkWriteError as err:  # some of them are there already, which ends a transaction
                if not is_duplicate(err):
                    raise
                made.clear()
                added = self._steps.run("add", partial(add, is_careful=True))
            waiting = [new.id for new in jobs if new.waits_for]
            self._look_after_held(waiting, turn.now)
        if waiting or self._connection.has_transactions:
            notify.send(self._connection, "jobs")
        return added

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        with self._connection.call() as space:
            if ask.want <= 0:
                return self._settle_alone(space, ask, now)
            if not self._connection.has_transactions:
                return self._desk.exchange(ask, now)
            seen = None if ask.settled else self._claimer.survey(ask, now)
            if seen is not None and not seen.has_work:
                return Exchanged(now=seen.now, next_due_at=seen.next_due_at)
            with self._head.work(now) as turn:
                refused = self._settle(ask, turn.now, is_last=False)
                sight = seen if seen is not None and paused_of(seen.head) == turn.paused else None
                got = self._claimer.claim(ask, open_queues(ask.queues, turn.paused), now, sight)
                if ask.settled and not got.jobs:
                    self._steps.flush()
            reach("exchange.after_commit")
            return Exchanged(now=got.now, refused=refused, claimed=got.jobs, next_due_at=got.next_due_at)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        with self._connection.call() as space:
            at = self._head.now(space, now)
            lost: list[str] = []
            if leases:
                reach("extend.before_commit")
                lost = self._leases.extend(space, holder, leases, at + lease_for)
                reach("extend.after_commit")
            return Extended(now=at, lost=lost, cancels=self._leases.cancels(space, holder))

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        with self._connection.call() as space:
            at = self._head.now(space, now)
            self._head.end_the_abandoned(space)
            self._upkeep.finish(space, FINISH_AT_ONCE, at)
            return self._parker.readable(self._leases.lapsed(space, limit, at), "nobody", at)

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        with self._connection.call() as space:
            at = self._head.now(space, now)
            return self._change(changes, at, has_lapsed(at))

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        with self._connection.call(), self._head.work(now) as turn:
            return self._change(changes, turn.now, lambda change: {**is_same(change), "lease_until": None})

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        with self._connection.call() as space:
            return self._leases.ask_to_stop(space, ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        with self._connection.call() as space:
            self._leases.record_progress(space, holder, reports)

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        with self._connection.call(), self._head.work(now):

            def delete(step: Step) -> list[str]:
                jobs = self._jobs.get(step.space, list(dict.fromkeys(ids)), step.session)
                return self._remover.remove(step, [job for job in jobs if job.state.is_final])

            return self._steps.run("delete", delete)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._connection.call() as space:
            return self._jobs.get(space, ids)

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        with self._connection.call():
            return self._lists.page(where, check_cursor(cursor), limit)

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        with self._connection.call(), self._head.work(now) as turn:
            refused = self._steps.run("edit", lambda step: self._schedules.edit(step, edits, turn.now))
        notify.send(self._connection, "schedules", "jobs")
        return refused

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        with self._connection.call() as space:
            return self._schedules.get(space, ids)

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        with self._connection.call() as space:
            return self._schedules.page(space, where or ScheduleFilter(), cursor, limit)

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        with self._connection.call() as space:
            at, locked = self._head.now(space, now), self._contention.locked()
            due = self._schedules.due(space, limit, at, locked)
            if not locked:
                return due
            self._head.end_the_abandoned(space)
            again_at = at + int(PAUSE * SECOND)
            return msgspec.structs.replace(due, next_due_at=min(due.next_due_at or again_at, again_at))

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        with self._connection.call(), self._head.work(now) as turn:
            results = self._contention.fire(firings, turn.now)
        notify.send(self._connection, "jobs")
        return results

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        check_cursor(cursor)
        with self._connection.call() as space:
            return self._ledger.page(space, schedule_id, start, end, cursor, limit)

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        with self._connection.call(), self._head.work(now):
            return self._steps.run("edit", lambda step: self._entries.edit(step, edits))

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        with self._connection.call() as space:
            return self._entries.get(space, kind, names)

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        with self._connection.call() as space:
            return self._entries.page(space, kind, cursor, limit)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        with self._connection.call() as space:
            self._notes.add(space, records)

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        with self._connection.call() as space:
            self._upkeep.deliver(space, FINISH_AT_ONCE)  # no edit is seen without its note
            return self._notes.page(space, where, cursor, limit)

    # Queues, nodes, logs, locks, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        with self._connection.call() as space:
            self._head.pause(space, queue, paused=paused)
        notify.send(self._connection, "jobs")

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        del now
        with self._connection.call() as space:
            return self._queues(space)

    def beat(self, node: Node, *, now: int | None = None) -> int:
        data = msgspec.json.encode(node).decode()
        with self._connection.call() as space:
            fields = {"beat_at": NOW if now is None else now, "data": {"$literal": data}}
            kept: Document = space.nodes.find_one_and_update(  # type: ignore[assignment] # an upsert always finds one
                {"_id": node.id}, [{"$set": fields}], upsert=True, return_document=ReturnDocument.AFTER
            )
            return int(kept["beat_at"])

    def list_nodes(self) -> list[Node]:
        with self._connection.call() as space:
            return [_node_of(document) for document in space.nodes.find().sort("_id", 1)]

    def forget_node(self, node_id: str) -> None:
        with self._connection.call() as space:
            space.nodes.delete_one({"_id": node_id})

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        with self._connection.call() as space:
            self._logs.append(space, lines)

    def list_logs(
        self, job_id: str, *, after: int = 0, start: int | None = None, end: int | None = None, limit: int = 200
    ) -> list[LogLine]:
        with self._connection.call() as space:
            return self._logs.of(space, job_id, after=after, start=start, end=end, limit=limit)

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        with self._connection.call() as space, self._head.work(now):
            return self._locks.acquire(space, name, token, ttl, now)

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        with self._connection.call() as space:
            return self._locks.extend(space, name, token, ttl, now)

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        with self._connection.call() as space:
            return self._locks.release(space, name, token, now)

    def recount(self) -> dict[str, int]:
        with self._connection.call() as space:
            self._connection.wire.settle()
            return self._counters.differences(space)

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        with self._connection.call() as space, self._head.work(now) as turn:
            self._head.forget_the_dead(space)
            pruned = self._upkeep.prune(space, retention, limit, turn.now)
        with suppress(StoreUnavailable), self._connection.call() as space:  # a fresh count may take too long
            self._counters.set_right(space, turn.now)
        return pruned

    # Moving.

    def seal(self, seal: Seal | None) -> None:
        self._head.seal(seal)
        notify.send(self._connection, "jobs", "schedules")

    def sealed(self) -> Seal | None:
        return self._head.sealed()

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        with self._connection.call() as space:
            self._upkeep.deliver(space, FINISH_AT_ONCE)
            queues = self._queues(space) if part == "queues" else []
            return self._mover.page(space, part, cursor, limit, queues)

    def load(self, records: Sequence[Record]) -> int:
        with self._connection.call() as space:
            return self._mover.load(space, records, self._queues(space))

    # What the verbs are made of.

    def _settle_alone(self, space: Space, ask: Exchange, now: int | None) -> Exchanged:
        turn = self._head.look(space, now)
        refused = self._settle(ask, turn.now, is_last=True)
        sight = self._claimer.look(Question(open_queues(ask.queues, turn.paused), 0, now))
        return Exchanged(now=sight.now, refused=refused, next_due_at=sight.next_due_at)

    def _settle(self, ask: Exchange, now: int, *, is_last: bool) -> list[Refusal]:
        if not ask.settled:
            return []
        return self._decide(ask.settled, now, held_by(ask.holder), "exchange", is_last=is_last)

    def _change(self, changes: Sequence[Change], now: int, guard: Callable[[Change], Document]) -> list[Refusal]:
        return self._decide(changes, now, guard, "change", is_last=True) if changes else []

    def _decide(
        self, changes: Sequence[Change], now: int, guard: Callable[[Change], Document], verb: str, *, is_last: bool
    ) -> list[Refusal]:
        """Write decided changes, and wake others where some job can go on."""
        rest = self._settler.tied(self._connection.space, changes) if self._connection.has_transactions else []
        tied = set(map(id, rest))
        loose = [change for change in changes if id(change) not in tied]  # first: the others may release some of them
        answers = [
            self._steps.run(
                verb, partial(self._settle_some, group, now, guard), is_last=is_last, is_loose=group is loose
            )
            for group in (loose, rest)
            if group
        ]
        if any(others_can_go_on for _, others_can_go_on in answers):
            notify.send(self._connection, "jobs")
        return [refusal for refused, _ in answers for refusal in refused]

    def _settle_some(
        self, changes: Sequence[Change], now: int, guard: Callable[[Change], Document], step: Step
    ) -> tuple[list[Refusal], bool]:
        refused = self._settler.settle(step, changes, now, guard)
        return refused, step.counts.grew(State.QUEUED, State.SCHEDULED)

    def _look_after_held(self, ids: Sequence[str], now: int) -> None:
        """Jobs that were added to wait: what they wait for may have ended while they were written."""
        if not ids:
            return

        def look(step: Step) -> None:
            for job in self._jobs.get(step.space, ids, step.session):
                if job.state is State.HELD and job.waits_for:
                    self._settler.waiters.look_at(step, job, now)

        self._steps.run("add", look)

    def _queues(self, space: Space) -> list[QueueInfo]:
        paused = self._head.look(space, None).paused
        self._connection.wire.settle()
        counts = self._counters.read(space)
        return [
            counts.info(name, is_paused=name in paused, oldest_at=self._jobs.oldest_ready(space, name))
            for name in sorted(paused | counts.queues())
        ]


def _node_of(document: Document) -> Node:
    return node_from(str(document["_id"]), str(document.get("data", "")), int(document["beat_at"]))
