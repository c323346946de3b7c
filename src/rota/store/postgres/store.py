"""PostgresStore: the contract on a schema of PostgreSQL. Each verb delegates to the part that has the duty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg_pool import AsyncConnectionPool, ConnectionPool

from rota.errors import BadStoreUrl
from rota.model.names import check_namespace
from rota.store.contract import LARGEST_PAGE, Features, Store
from rota.store.postgres import schema
from rota.store.postgres.adding import Adder
from rota.store.postgres.address import TIMEOUT, parse
from rota.store.postgres.changing import Changer
from rota.store.postgres.connection import Database
from rota.store.postgres.exchange import Exchanger
from rota.store.postgres.firing import Firer
from rota.store.postgres.leases import Leases
from rota.store.postgres.ledger import Ledger
from rota.store.postgres.listing import Listing
from rota.store.postgres.lookahead import LookaheadJudge
from rota.store.postgres.moving import Moving
from rota.store.postgres.operations import Operations
from rota.store.postgres.records import Records
from rota.store.postgres.schedules import Schedules
from rota.store.postgres.upkeep import Upkeep
from rota.store.shared import forks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.edit import Edit
    from rota.model.entry import Entry, EntryEdit
    from rota.model.firing import Firing
    from rota.model.job import Job, NewJob
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.model.settle import Change
    from rota.store.contract import (
        Added,
        AuditFilter,
        Channel,
        Due,
        Exchange,
        Exchanged,
        Extended,
        Fired,
        JobFilter,
        Listener,
        LogLine,
        Node,
        Page,
        Part,
        Pruned,
        QueueInfo,
        Record,
        Refusal,
        Retention,
        ScheduleFilter,
        Seal,
    )


def from_url(url: str, *, namespace: str = "rota") -> PostgresStore:
    """The store that a URL names, not opened yet."""
    return PostgresStore(url, namespace=namespace)


class PostgresStore(Store, forks.Forked):
    """One schema, shared by any number of threads, processes and hosts."""

    features = Features(kind="postgres", is_durable=True, is_shared=True, enqueues_in_transactions=True)

    def __init__(
        self,
        server: str | ConnectionPool[Any],
        *,
        namespace: str = "rota",
        listen_url: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """`server` is a URL, or a psycopg_pool.ConnectionPool of the caller: it is used, and never closed."""
        self.namespace = check_namespace(namespace)
        address = parse(server) if isinstance(server, str) else None
        pool = server if isinstance(server, ConnectionPool) else None
        if address is None and pool is None:
            raise BadStoreUrl(_not_a_server(server))
        seconds = timeout or (address.timeout if address else TIMEOUT)
        listen = parse(listen_url).conninfo if listen_url else (address.listen if address else None)
        self._database = database = Database(address, pool, self.namespace, seconds, listen)
        self._adder = Adder(database)
        self._leases = Leases(database)
        self._ledger = ledger = Ledger(database)
        self._listing = Listing(database)
        self._records = records = Records(database)
        self._operations = Operations(database)
        self._moving = Moving(database)
        self._changer = changer = Changer(database, ledger)
        self._schedules = schedules = Schedules(database, self._adder, changer, ledger, records)
        self._firer = Firer(database, schedules, changer, ledger)
        self._exchanger = Exchanger(database, changer, LookaheadJudge(schedules, changer, ledger))
        self._upkeep = Upkeep(database, changer, ledger, records)
        forks.register(self)

    def after_fork(self) -> None:
        self._database.after_fork()

    def open(self) -> None:
        schema.open_schema(self._database)

    def pending_migrations(self) -> list[str]:
        return schema.pending_scripts(self._database)

    def namespaces(self) -> list[str]:
        return self._database.visit(schema.namespaces)

    def close(self) -> None:
        self._database.close()

    def describe(self) -> str:
        return self._database.describe()

    def now(self) -> int:
        return self._database.now()

    def listen(self, channel: Channel) -> Listener:
        return self._database.notifier.listen(channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        return self._adder.add(jobs, now)

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        return self._exchanger.exchange(ask, now)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        return self._leases.extend(holder, leases, lease_for, now)

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self._leases.expired(limit, now)

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        return self._changer.rescue(changes, now)

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        return self._changer.change(changes, now)

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        return self._leases.request_cancels(ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        self._leases.record_progress(holder, reports)

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        return self._changer.delete(ids, now)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._listing.get(ids)

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        return self._listing.page(where, cursor, limit)

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        return self._adder.add_in(transaction, jobs)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        return self._changer.settle_in(transaction, holder, change)

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        return self._schedules.edit(edits, now)

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return self._schedules.get(ids)

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        return self._schedules.page(where, cursor, limit)

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        return self._schedules.due(limit, now)

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        return self._firer.fire(firings, now)

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        return self._ledger.page(schedule_id, start, end, cursor, limit)

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        return self._records.edit_entries(edits, now)

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        return self._records.get_entries(kind, names)

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        return self._records.list_entries(kind, cursor, limit)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        self._records.add(records)

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        return self._records.page(where, cursor, limit)

    # Queues, nodes, logs, locks, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        self._operations.pause_queue(queue, paused=paused)

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        del now
        return self._operations.list_queues()

    def beat(self, node: Node, *, now: int | None = None) -> int:
        return self._operations.beat(node, now)

    def list_nodes(self) -> list[Node]:
        return self._operations.list_nodes()

    def forget_node(self, node_id: str) -> None:
        self._operations.forget_node(node_id)

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        self._operations.append_logs(lines)

    def list_logs(
        self,
        job_id: str,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = LARGEST_PAGE,
    ) -> list[LogLine]:
        return self._operations.list_logs(job_id, after, start, end, limit)

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        return self._operations.acquire_lock(name, token, ttl, now)

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        return self._operations.extend_lock(name, token, ttl, now)

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        return self._operations.release_lock(name, token, now)

    def recount(self) -> dict[str, int]:
        return self._operations.recount()

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        return self._upkeep.prune(retention, limit, now)

    # Copying to another store.

    def seal(self, seal: Seal | None) -> None:
        self._moving.seal(seal)

    def sealed(self) -> Seal | None:
        return self._moving.sealed()

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        return self._moving.dump(part, cursor, limit)

    def load(self, records: Sequence[Record]) -> int:
        return self._moving.load(records)


def _not_a_server(server: object) -> str:
    if isinstance(server, AsyncConnectionPool):
        return "an AsyncConnectionPool cannot carry the store, which works in threads; give a ConnectionPool or a URL"
    return f"a PostgreSQL store takes a URL or a psycopg_pool.ConnectionPool, got {type(server).__name__}"
