"""The contract on one database of a MongoDB server. Each verb is one call to the part that does the work.

If the server has transactions (a replica set, a cluster), a step is one. A standalone server has none: there a step is
several writes in a safe order. `outbox`, `changing` and `counters` say what a crash can leave between them,
and who finishes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.names import check_namespace
from rota.store.contract import Features, Store
from rota.store.mongo import notify, schema
from rota.store.mongo.adding import Adder
from rota.store.mongo.changing import Changer
from rota.store.mongo.connection import Connection
from rota.store.mongo.control import STEP, ControlDocument
from rota.store.mongo.counters import Counters
from rota.store.mongo.exchange import Exchanger
from rota.store.mongo.firing import Firer
from rota.store.mongo.leases import Leases
from rota.store.mongo.ledger import Ledger
from rota.store.mongo.listing import Listing
from rota.store.mongo.moving import Moving
from rota.store.mongo.operations import Operations
from rota.store.mongo.records import Records
from rota.store.mongo.schedules import Schedules
from rota.store.mongo.steps import Steps
from rota.store.mongo.upkeep import Upkeep
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pymongo import MongoClient

    from rota.model.audit_record import AuditRecord
    from rota.model.edit import Edit
    from rota.model.entry import Entry, EntryEdit
    from rota.model.firing import Firing
    from rota.model.job import Job, NewJob
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.model.settle import Change
    from rota.store import contract
    from rota.store.mongo.database import Database, Document


class MongoStore(Store, forks.Forked):
    """One namespace of one database. `where` is a URL, or a client of the caller's, which is never closed."""

    features = Features(kind="mongo", is_durable=True, is_shared=True, counters_are_exact=False, clock_step=STEP)

    def __init__(
        self, where: str | MongoClient[Document], *, namespace: str = "rota", database: str | None = None
    ) -> None:
        self.namespace = check_namespace(namespace)
        self._given = (where, self.namespace, database)
        self._connection = Connection(*self._given)
        self._control = ControlDocument(self._connection, self.describe())
        counters = Counters()
        self._steps = Steps(self._connection, self._control, counters)
        self._listing = Listing(self._connection)
        self._ledger = Ledger(self._connection)
        self._operations = Operations(self._steps, counters)
        self._changer = Changer(self._steps)
        self._adder = Adder(self._steps)
        self._schedules = Schedules(self._steps)
        self._firer = Firer(self._steps, self._schedules)
        self._upkeep = Upkeep(self._steps, counters, self._schedules)
        self._records = Records(self._steps, self._upkeep.deliver)
        self._leases = Leases(self._steps, self._upkeep)
        self._exchanger = Exchanger(self._steps, self._changer, self._upkeep)
        self._moving = Moving(self._steps, self._schedules, self._operations, self._upkeep)
        forks.register(self)

    def after_fork(self) -> None:
        self._connection.after_fork()

    def open(self) -> None:
        self._connection.open()
        try:
            with self._connection.call() as db:
                schema.migrate(db)
        except BaseException:
            self._connection.close()
            raise

    def pending_migrations(self) -> list[str]:
        return self._read_unopened(schema.pending)

    def namespaces(self) -> list[str]:
        return self._read_unopened(schema.namespaces)

    def _read_unopened(self, read: Callable[[Database], list[str]]) -> list[str]:
        connection = Connection(*self._given)
        connection.open()
        try:
            with connection.call() as db:
                return read(db)
        finally:
            connection.close()

    def close(self) -> None:
        self._connection.close()

    def describe(self) -> str:
        return f"{self._connection.where}, namespace {self.namespace}"

    def now(self) -> int:
        with self._connection.call():
            return self._control.now(None)

    def listen(self, channel: contract.Channel) -> contract.Listener:
        return notify.MongoListener(self._connection, channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[contract.Added]:
        return self._adder.add_jobs(jobs, now)

    def exchange(self, ask: contract.Exchange, *, now: int | None = None) -> contract.Exchanged:
        return self._exchanger.exchange(ask, now)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> contract.Extended:
        return self._leases.extend_leases(holder, leases, lease_for, now)

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self._leases.lapsed_jobs(limit, now)

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[contract.Refusal]:
        return self._changer.rescue_jobs(changes, now)

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[contract.Refusal]:
        return self._changer.change_jobs(changes, now)

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        return self._leases.request_cancels(ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        self._leases.record_progress(holder, reports)

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        return self._changer.delete_jobs(ids, now)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._listing.get_jobs(ids)

    def list_jobs(self, where: contract.JobFilter, *, cursor: str | None = None, limit: int = 50) -> contract.Page[Job]:
        return self._listing.list_jobs(where, cursor, limit)

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        return self._schedules.edit_schedules(edits, now)

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return self._schedules.get_schedules(ids)

    def list_schedules(
        self, where: contract.ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> contract.Page[Schedule]:
        return self._schedules.list_schedules(where, cursor, limit)

    def due_schedules(self, limit: int, *, now: int | None = None) -> contract.Due:
        return self._firer.due_schedules(limit, now)

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[contract.Fired]:
        return self._firer.fire(firings, now)

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> contract.Page[Occurrence]:
        return self._ledger.list_occurrences(schedule_id, start, end, cursor, limit)

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        return self._records.edit_entries(edits, now)

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        return self._records.get_entries(kind, names)

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> contract.Page[Entry]:
        return self._records.list_entries(kind, cursor, limit)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        self._records.add_audit_records(records)

    def list_audit_records(
        self, where: contract.AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> contract.Page[AuditRecord]:
        return self._records.list_audit_records(where, cursor, limit)

    # Queues, nodes, logs, locks, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        self._operations.pause_queue(queue, paused=paused)

    def list_queues(self, *, now: int | None = None) -> list[contract.QueueInfo]:
        del now
        return self._operations.list_queues()

    def beat(self, node: contract.Node, *, now: int | None = None) -> int:
        return self._operations.beat(node, now)

    def list_nodes(self) -> list[contract.Node]:
        return self._operations.list_nodes()

    def forget_node(self, node_id: str) -> None:
        self._operations.forget_node(node_id)

    def append_logs(self, lines: Sequence[contract.LogLine]) -> None:
        self._operations.append_logs(lines)

    def list_logs(
        self, job_id: str, *, after: int = 0, start: int | None = None, end: int | None = None, limit: int = 200
    ) -> list[contract.LogLine]:
        return self._operations.list_logs(job_id, after=after, start=start, end=end, limit=limit)

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        return self._operations.acquire_lock(name, token, ttl, now)

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        return self._operations.extend_lock(name, token, ttl, now)

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        return self._operations.release_lock(name, token, now)

    def recount(self) -> dict[str, int]:
        return self._operations.recount()

    def prune(self, retention: contract.Retention, limit: int, *, now: int | None = None) -> contract.Pruned:
        return self._upkeep.prune(retention, limit, now)

    # Copying.

    def seal(self, seal: contract.Seal | None) -> None:
        self._control.seal(seal)

    def sealed(self) -> contract.Seal | None:
        return self._control.sealed()

    def dump(
        self, part: contract.Part, *, cursor: str | None = None, limit: int = 500
    ) -> contract.Page[contract.Record]:
        return self._moving.dump(part, cursor, limit)

    def load(self, records: Sequence[contract.Record]) -> int:
        return self._moving.load(records)
