"""The Redis store: the contract on Redis or Valkey. A verb is one script, or one that reads and one that commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.names import check_namespace
from rota.store.contract import Features, Store
from rota.store.redis.adding import Adder
from rota.store.redis.address import address_of, client_of
from rota.store.redis.changing import Changer
from rota.store.redis.connection import Connection
from rota.store.redis.exchange import Exchanger
from rota.store.redis.firing import Firer
from rota.store.redis.guarded_writer import GuardedWriter
from rota.store.redis.leases import Leases
from rota.store.redis.ledger import Ledger
from rota.store.redis.listing import Listing
from rota.store.redis.lookahead import LookaheadJudge
from rota.store.redis.moving import Moving
from rota.store.redis.notify import ChannelListener
from rota.store.redis.operations import Operations
from rota.store.redis.records import Records
from rota.store.redis.schedules import Schedules
from rota.store.redis.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis import Redis
    from redis.cluster import RedisCluster

    from rota.model.audit_record import AuditRecord
    from rota.model.edit import Edit
    from rota.model.entry import Entry, EntryEdit
    from rota.model.firing import Firing
    from rota.model.job import Job, NewJob
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.model.settle import Change
    from rota.store import contract as c


class RedisStore(Store):
    """One namespace on one server, shared by any number of threads, processes and hosts."""

    features = Features(kind="redis", is_durable=True, is_shared=True)

    def __init__(self, server: str | Redis | RedisCluster, *, namespace: str = "rota") -> None:
        """`server` is a URL, or a client of the caller: it is used, and never closed."""
        self.namespace = check_namespace(namespace)
        client = client_of(server) if isinstance(server, str) else server
        is_ours = isinstance(server, str)
        self._connection = Connection(client, self.namespace, address_of(client), is_ours=is_ours)
        writer = GuardedWriter(self._connection)
        self._writer = writer
        self._adder = Adder(writer)
        self._changer = Changer(writer)
        self._schedules = Schedules(writer)
        self._firer = Firer(writer, self._schedules)
        self._exchanger = Exchanger(writer, self._changer, LookaheadJudge(writer, self._schedules))
        self._leases = Leases(writer)
        self._listing = Listing(writer)
        self._ledger = Ledger(writer)
        self._records = Records(writer)
        self._operations = Operations(writer)
        self._upkeep = Upkeep(writer, self._listing, self._changer)
        self._moving = Moving(writer, self._listing, self._schedules, self._records, self._operations)

    def open(self) -> None:
        self._connection.open()

    def pending_migrations(self) -> list[str]:
        return self._connection.pending_migrations()

    def namespaces(self) -> list[str]:
        return self._connection.namespaces()

    def close(self) -> None:
        self._connection.close()

    def describe(self) -> str:
        return self._connection.description

    def warnings(self) -> list[str]:
        return self._connection.warnings()

    def now(self) -> int:
        return self._writer.snapshot().now

    def listen(self, channel: c.Channel) -> c.Listener:
        return ChannelListener(self._connection, channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[c.Added]:
        return self._adder.add_jobs(jobs, now)

    def exchange(self, ask: c.Exchange, *, now: int | None = None) -> c.Exchanged:
        return self._exchanger.exchange(ask, now)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> c.Extended:
        return self._leases.extend_leases(holder, leases, lease_for, now)

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self._leases.expired_jobs(limit, now)

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[c.Refusal]:
        return self._changer.rescue_jobs(changes, now)

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[c.Refusal]:
        return self._changer.change_jobs(changes, now)

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        return self._leases.request_cancels(ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        self._leases.record_progress(holder, reports)

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        del now
        return self._changer.delete_jobs(ids)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._listing.get_jobs(ids)

    def list_jobs(self, where: c.JobFilter, *, cursor: str | None = None, limit: int = 50) -> c.Page[Job]:
        return self._listing.list_jobs(where, cursor, limit)

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        return self._schedules.edit_schedules(edits, now)

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return self._schedules.get_schedules(ids)

    def list_schedules(
        self, where: c.ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> c.Page[Schedule]:
        return self._schedules.list_schedules(where, cursor, limit)

    def due_schedules(self, limit: int, *, now: int | None = None) -> c.Due:
        return self._schedules.due_schedules(limit, now)

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[c.Fired]:
        return self._firer.fire(firings, now)

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> c.Page[Occurrence]:
        return self._ledger.list_occurrences(schedule_id, start, end, cursor, limit)

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        del now
        return self._records.edit_entries(edits)

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        return self._records.get_entries(kind, names)

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> c.Page[Entry]:
        return self._records.list_entries(kind, cursor, limit)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        self._records.add_audit_records(records)

    def list_audit_records(
        self, where: c.AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> c.Page[AuditRecord]:
        return self._records.list_audit_records(where, cursor, limit)

    # Queues, nodes, logs, locks.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        self._operations.pause_queue(queue, paused=paused)

    def list_queues(self, *, now: int | None = None) -> list[c.QueueInfo]:
        del now
        return self._operations.list_queues()

    def beat(self, node: c.Node, *, now: int | None = None) -> int:
        return self._operations.beat(node, now)

    def list_nodes(self) -> list[c.Node]:
        return self._operations.list_nodes()

    def forget_node(self, node_id: str) -> None:
        self._operations.forget_node(node_id)

    def append_logs(self, lines: Sequence[c.LogLine]) -> None:
        self._operations.append_logs(lines)

    def list_logs(
        self, job_id: str, *, after: int = 0, start: int | None = None, end: int | None = None, limit: int = 200
    ) -> list[c.LogLine]:
        return self._operations.list_logs(job_id, after, start, end, limit)

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        return self._operations.acquire_lock(name, token, ttl, now)

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        return self._operations.extend_lock(name, token, ttl, now)

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        return self._operations.release_lock(name, token, now)

    # Upkeep and moving.

    def recount(self) -> dict[str, int]:
        return self._upkeep.recount()

    def prune(self, retention: c.Retention, limit: int, *, now: int | None = None) -> c.Pruned:
        return self._upkeep.prune(retention, limit, now)

    def seal(self, seal: c.Seal | None) -> None:
        self._moving.seal(seal)

    def sealed(self) -> c.Seal | None:
        return self._moving.sealed()

    def dump(self, part: c.Part, *, cursor: str | None = None, limit: int = 500) -> c.Page[c.Record]:
        return self._moving.dump(part, cursor, limit)

    def load(self, records: Sequence[c.Record]) -> int:
        return self._moving.load(records)
