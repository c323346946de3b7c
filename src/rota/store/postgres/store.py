"""PostgresStore: the contract on a schema of PostgreSQL. The most used verbs are one statement, the others one
transaction in which the model decides about rows that are locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from rota.errors import BadStoreUrl, StoreError
from rota.failpoints import reach
from rota.model.job import accept, is_plain
from rota.model.names import check_namespace
from rota.store.contract import (
    LARGEST_PAGE,
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
from rota.store.postgres import marks, moving, schema
from rota.store.postgres.adding import Adder
from rota.store.postgres.address import TIMEOUT, parse
from rota.store.postgres.caller_transaction import check_transaction
from rota.store.postgres.changing import Changer
from rota.store.postgres.clock import ServerClock
from rota.store.postgres.connection import Database
from rota.store.postgres.exchange import Exchanger, Odd, Sealed, check_seal
from rota.store.postgres.fast import firing as fast_firing
from rota.store.postgres.fast.firing import FiringBatch
from rota.store.postgres.firing import Firer
from rota.store.postgres.job_rows import JobRows, ReadyJobs, is_simply_ready
from rota.store.postgres.keys import Keys
from rota.store.postgres.ledger import Ledger
from rota.store.postgres.lookahead import LookaheadJudge
from rota.store.postgres.notify import Notifier
from rota.store.postgres.operations import Locks, Logs, Nodes, Queues
from rota.store.postgres.records import Entries, Notes
from rota.store.postgres.schedules import Schedules
from rota.store.postgres.transaction import Transaction
from rota.store.postgres.upkeep import Upkeep
from rota.store.shared import forks
from rota.store.shared.matching import check_cursor, has_lapsed, is_held_by, is_running, is_same

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

Result = TypeVar("Result")


def from_url(url: str, *, namespace: str = "rota") -> PostgresStore:
    """The store that a URL names, not opened yet."""
    return PostgresStore(url, namespace=namespace)


class PostgresStore(Store, forks.Forked):
    """One schema, shared by any number of threads, processes and hosts."""

    features = Features(kind="postgres", is_durable=True, is_shared=True, enqueues_in_transactions=True)

    def __init__(
        self,
        place: str | ConnectionPool[Any],
        *,
        namespace: str = "rota",
        listen_url: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """`place` is a URL, or a psycopg_pool.ConnectionPool of yours, which is used and never closed."""
        self.namespace = check_namespace(namespace)
        address = parse(place) if isinstance(place, str) else None
        pool = place if isinstance(place, ConnectionPool) else None
        if address is None and pool is None:
            raise BadStoreUrl(_no_place(place))
        seconds = timeout or (address.timeout if address else TIMEOUT)
        self._database = Database(address, pool, self.namespace, seconds)
        self._listen = parse(listen_url).conninfo if listen_url else (address.listen if address else None)
        self._clock = ServerClock()
        self._notifier = Notifier(self.namespace, self._line)
        self._make_parts()
        forks.register(self)

    def after_fork(self) -> None:
        self._database.after_fork()
        self._notifier.after_fork()
        self._clock.forget()

    def _make_parts(self) -> None:
        self._jobs, self._keys, self._ledger = JobRows(), Keys(), Ledger()
        self._queues, self._nodes, self._logs, self._locks = Queues(), Nodes(), Logs(), Locks()
        self._adder = Adder(self._jobs, self._keys)
        self._changer = Changer(self._jobs, self._keys, self._ledger)
        self._notes = Notes()
        self._entries = Entries(self._notes)
        self._schedules = Schedules(self._jobs, self._adder, self._changer, self._ledger, self._notes)
        self._firer = Firer(self._schedules, self._jobs, self._keys, self._changer, self._ledger)
        lookahead = LookaheadJudge(self._schedules, self._jobs, self._keys, self._changer, self._ledger)
        self._exchanger = Exchanger(self._changer, lookahead)
        self._upkeep = Upkeep(self._changer, self._ledger, self._queues, self._nodes, self._notes)
        self._dumper = moving.Dumper(self._queues)
        self._loader = moving.Loader(self._jobs, self._keys, self._queues)

    def open(self) -> None:
        self._database.open()
        try:
            if self._database.call(lambda tx: schema.current_version(tx, self.namespace)) != schema.VERSION:
                self._database.transact("", lambda tx: schema.migrate(tx, self.namespace), timeout=schema.PATIENCE)
        except BaseException:
            self._database.close()
            raise

    def pending_migrations(self) -> list[str]:
        version = self._database.visit(lambda tx: schema.current_version(tx, self.namespace))
        return schema.scripts_after(version, self.namespace)

    def namespaces(self) -> list[str]:
        return self._database.visit(schema.namespaces)

    def close(self) -> None:
        self._notifier.close()
        self._database.close()
        self._clock.forget()

    def describe(self) -> str:
        return f"{self._database.where}, schema {self.namespace}"

    def now(self) -> int:
        return self._at(None)

    def listen(self, channel: Channel) -> Listener:
        return self._notifier.listen(channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        if not jobs:
            return []
        is_simple = not any(new.key or new.slot or new.waits_for or new.ahead is not None for new in jobs)
        return (self._add_simple(jobs, now) if is_simple else None) or self._add(jobs, now)

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        reply = self._told_of_seals(lambda: self._exchange(ask, now))
        if now is None:
            self._clock.hear(reply.now)
        return reply

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        reach("extend.before_commit")
        reply = self._database.call(lambda tx: self._exchanger.extend(tx, holder, leases, lease_for, now))
        reach("extend.after_commit")
        return reply

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self._database.call(lambda tx: self._jobs.lapsed(tx, limit, now))

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        def rescue(tx: Transaction, at: int) -> list[Refusal]:
            return self._changer.settle(
                tx, changes, at, lambda change, job: is_same(change, job) and has_lapsed(job, at), waits=False
            )

        return self._transact("change", rescue, now, is_free=True)

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        def change(tx: Transaction, at: int) -> list[Refusal]:
            return self._changer.settle(
                tx, changes, at, lambda change, job: is_same(change, job) and not is_running(job)
            )

        return self._transact("change", change, now)

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        return self._database.call(lambda tx: self._exchanger.request_cancels(tx, ids, reason))

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        if reports:
            self._database.call(lambda tx: self._exchanger.record_progress(tx, holder, reports))

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        return self._transact("delete", lambda tx, _: self._changer.remove_ended(tx, ids), now)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._database.call(lambda tx: self._jobs.get(tx, ids))

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        check_cursor(cursor)
        return self._database.call(lambda tx: self._jobs.page(tx, where, cursor, limit))

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        def add(tx: Transaction) -> list[Added]:
            check_seal(tx)
            at = tx.rows("SELECT {ns}.micros()")[0][0]
            return self._adder.add(tx, jobs, at)

        return self._in_theirs(transaction, add)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        def settle(tx: Transaction) -> bool:
            at = tx.rows("SELECT {ns}.micros()")[0][0]
            refused = self._changer.settle(tx, [change], at, lambda change, job: is_held_by(holder, change, job))
            return not refused

        return self._in_theirs(transaction, settle)

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        def edit(tx: Transaction, at: int) -> list[str]:
            tx.notify("schedules")
            tx.notify("jobs")
            return self._schedules.edit(tx, edits, at)

        return self._transact("edit", edit, now) if edits else []

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return self._database.call(lambda tx: self._schedules.get(tx, ids))

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        return self._database.call(lambda tx: self._schedules.page(tx, where or ScheduleFilter(), cursor, limit))

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        due, broken = self._database.call(lambda tx: self._schedules.due(tx, limit, now))
        if now is None:
            self._clock.hear(due.now)
        if broken:
            self._database.transact("", lambda tx: self._schedules.set_aside(tx, broken))
        return due

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        if not firings:
            return []
        answers = self._fire_at_once(firings, now) if fast_firing.are_plain(firings) else None
        return answers or self._transact("fire", lambda tx, at: self._firer.fire(tx, firings, at), now)

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        check_cursor(cursor)
        return self._database.look(lambda tx: self._ledger.page(tx, schedule_id, start, end, cursor, limit))

    # Entries and notes.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        return self._transact("", lambda tx, _: self._entries.edit(tx, edits), now)

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        return self._database.call(lambda tx: self._entries.get(tx, kind, names))

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        return self._database.call(lambda tx: self._entries.page(tx, kind, cursor, limit))

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        self._database.call(lambda tx: self._notes.add(tx, records))

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        return self._database.call(lambda tx: self._notes.page(tx, where, cursor, limit))

    # Queues, nodes, logs, locks, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        def pause(tx: Transaction, at: int) -> None:
            del at
            self._queues.pause(tx, queue, paused=paused)
            tx.notify("jobs")

        self._transact("", pause, 0)

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        del now
        return self._database.look(self._queues.infos)

    def beat(self, node: Node, *, now: int | None = None) -> int:
        return self._database.call(lambda tx: self._nodes.beat(tx, node, now))

    def list_nodes(self) -> list[Node]:
        return self._database.call(self._nodes.all)

    def forget_node(self, node_id: str) -> None:
        self._database.call(lambda tx: self._nodes.forget(tx, node_id))

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        if lines:
            self._database.call(lambda tx: self._logs.append(tx, lines))

    def list_logs(
        self,
        job_id: str,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = LARGEST_PAGE,
    ) -> list[LogLine]:
        return self._database.call(lambda tx: self._logs.of(tx, job_id, after, start, end, limit))

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        def acquire(tx: Transaction, at: int) -> int | None:
            return self._locks.acquire(tx, name, token, ttl, at)

        return self._transact("", acquire, now)

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        return self._database.call(lambda tx: self._locks.extend(tx, name, token, ttl, now))

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        return self._database.call(lambda tx: self._locks.release(tx, name, token, now))

    def recount(self) -> dict[str, int]:
        return self._database.look(self._queues.recount)

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        pruned = self._transact("prune", lambda tx, at: self._upkeep.prune(tx, retention, limit, at), now)
        self._database.transact("", marks.clear)  # reads how far places were given before it has a number itself
        return pruned

    # Moving.

    def seal(self, seal: Seal | None) -> None:
        def put(tx: Transaction) -> None:
            moving.put_seal(tx, seal)
            tx.notify("jobs")
            tx.notify("schedules")

        self._database.transact("", put)

    def sealed(self) -> Seal | None:
        return self._database.call(moving.get_seal)

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        return self._database.look(lambda tx: self._dumper.page(tx, part, cursor, limit))

    def load(self, records: Sequence[Record]) -> int:
        return self._database.transact("", lambda tx: self._loader.load(tx, records))

    # What the verbs are made of.

    def _at(self, now: int | None) -> int:
        if now is not None:
            return now
        at: int = self._database.call(lambda tx: tx.rows("SELECT {ns}.micros()"))[0][0]
        self._clock.hear(at)
        return at

    def _transact(
        self, verb: str, work: Callable[[Transaction, int], Result], now: int | None, *, is_free: bool = False
    ) -> Result:
        """A transaction that begins with the server's clock, and with its seal unless a sealed store may do this."""

        def whole(tx: Transaction) -> Result:
            (at, seal) = tx.rows("SELECT coalesce(%s::bigint, {ns}.micros()), (SELECT value FROM {ns}.seal)", (now,))[0]
            if seal is not None and not is_free:
                raise Sealed(seal)
            return work(tx, at)

        result = self._told_of_seals(lambda: self._database.transact(verb, whole))
        self._notifier.notify("jobs")
        self._notifier.notify("schedules")
        return result

    def _exchange(self, ask: Exchange, now: int | None) -> Exchanged:
        """At once where that is enough, else step by step."""
        try:
            reach("exchange.before_commit")
            reply = self._database.call(lambda tx: self._exchanger.at_once(tx, ask, now))
            reach("exchange.after_commit")
        except Odd:
            reply = self._database.transact("exchange", lambda tx: self._exchanger.step_by_step(tx, ask, now))
            self._notifier.notify("jobs")
        return reply

    def _add_simple(self, jobs: Sequence[NewJob], now: int | None) -> list[Added] | None:
        """Jobs without a key that wait for nobody, by one call; None where that is not enough."""
        are_plain = all(map(is_plain, jobs))
        at = now if now is not None or are_plain else self._guessed()
        if len(jobs) == 1:
            job = accept(jobs[0], at or 0)
            return self._call_add(lambda tx: self._jobs.add_one(tx, job, at), jobs)
        if are_plain:
            return self._add_ready(jobs, ReadyJobs.of(jobs), at)
        accepted = [accept(new, at or 0) for new in jobs]
        if not all(map(is_simply_ready, accepted)):
            return None
        return self._add_ready(jobs, ReadyJobs.of(accepted), at)

    def _add_ready(self, jobs: Sequence[NewJob], ready: ReadyJobs, at: int | None) -> list[Added] | None:
        return self._call_add(lambda tx: self._jobs.add_ready(tx, ready, at), jobs)

    def _add(self, jobs: Sequence[NewJob], now: int | None) -> list[Added]:
        """Jobs of any kind."""
        added = self._transact("add", lambda tx, at: self._adder.add(tx, jobs, at), now)
        self._notifier.notify("jobs")
        return added

    def _guessed(self) -> int:
        """The server's time, without asking where it is known well enough."""
        at = self._clock.guess()
        return self._at(None) if at is None else at

    def _call_add(self, work: Callable[[Transaction], bool | None], jobs: Sequence[NewJob]) -> list[Added] | None:
        """What one call has added; None where that is not enough."""
        reach("add.before_commit")
        try:
            is_new = self._database.call(work)
        except StoreError as err:
            if isinstance(err.__cause__, psycopg.errors.UniqueViolation):
                return None  # one of them is there already
            raise
        if is_new is None:
            self._refuse_if_sealed()
        reach("add.after_commit")
        self._notifier.notify("jobs")
        return [Added(new.id) for new in jobs] if is_new else None

    def _fire_at_once(self, firings: Sequence[Firing], now: int | None) -> list[Fired] | None:
        """Plain firings, by one call; None where that is not enough."""
        batch = FiringBatch.of(firings, self._guessed() if now is None else now)
        place = batch.fire(self._database, is_guessed=now is None) if batch else 0
        if place is None:
            self._refuse_if_sealed()
        if place == fast_firing.MISDATED:
            self._clock.forget()
        if place == fast_firing.NONE_HOLDS:
            return fast_firing.told(firings, is_accepted=False)
        if place is None or place <= 0:
            return None
        reach("fire.after_commit")
        self._notifier.notify("jobs")
        return fast_firing.told(firings, is_accepted=True)

    def _refuse_if_sealed(self) -> None:
        sealed = self.sealed()
        if sealed is not None:
            raise sealed.refusal(self.describe())

    def _in_theirs(self, transaction: object, work: Callable[[Transaction], Result]) -> Result:
        """Work in the caller's transaction; its counters have a row of their own, so that nobody waits for it."""
        connection = check_transaction(transaction, self._database)
        tx = Transaction(connection, self.namespace)

        def whole() -> Result:
            result = work(tx)
            tx.finish()
            return result

        return self._told_of_seals(lambda: self._database.told(whole))

    def _told_of_seals(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except Sealed as err:
            raise self._refusal(err) from None

    def _refusal(self, err: Sealed) -> StoreError:
        return moving.unpacked(err.packed).refusal(self.describe())

    def _line(self) -> psycopg.Connection[Any] | None:
        """A connection that may listen; None where there is none."""
        return self._database.line(self._listen)


def _no_place(place: object) -> str:
    if isinstance(place, AsyncConnectionPool):
        return "an AsyncConnectionPool cannot carry the store, which works in threads; give a ConnectionPool or a URL"
    return f"a PostgreSQL store takes a URL or a psycopg_pool.ConnectionPool, got {type(place).__name__}"
