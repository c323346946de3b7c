"""SqliteStore: the contract on one SQLite file. Each verb is one transaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rota.model.names import check_namespace
from rota.store import contract as c
from rota.store.sqlite import clock, schema
from rota.store.sqlite.adding import Adder
from rota.store.sqlite.block_index import BlockIndex
from rota.store.sqlite.changing import Changer
from rota.store.sqlite.connection import Database
from rota.store.sqlite.exchange import Exchanger
from rota.store.sqlite.file_identity import Epoch, is_there
from rota.store.sqlite.firing import Firer
from rota.store.sqlite.leases import Leases
from rota.store.sqlite.ledger import Ledger
from rota.store.sqlite.listing import Listing
from rota.store.sqlite.lookahead import LookaheadJudge
from rota.store.sqlite.moving import Moving
from rota.store.sqlite.notify import Notifier
from rota.store.sqlite.operations import Operations
from rota.store.sqlite.records import Records
from rota.store.sqlite.schedules import Schedules
from rota.store.sqlite.transaction import Seals, Transactions
from rota.store.sqlite.upkeep import Upkeep

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


class SqliteStore(c.Store):
    """One file, shared by any number of threads and processes of one host."""

    features = c.Features(
        kind="sqlite", is_durable=True, is_shared=True, enqueues_in_transactions=True, has_lease_clock=True
    )

    def __init__(self, path: str | Path, *, namespace: str = "rota") -> None:
        self.path: Path = Path(path).absolute()
        self.namespace = name = check_namespace(namespace)
        self._database = Database(self.path, self._reopened)
        self._notifier = Notifier(self.path.with_name(self.path.name + "-notify"))
        self._blocks = BlockIndex(name)
        seals = Seals(name, self.describe())
        transactions = Transactions(self._database, name, seals, self._blocks, self._notifier)
        self._listing = Listing(name, transactions, self._blocks)
        self._ledger = Ledger(name, transactions)
        self._records = Records(name, transactions)
        self._operations = Operations(name, transactions)
        self._adder = Adder(name, transactions)
        self._changer = Changer(name, transactions, self._listing, self._ledger)
        self._leases = Leases(name, transactions, self._changer)
        self._schedules = Schedules(name, transactions, self._adder, self._changer, self._ledger, self._records)
        self._firer = Firer(name, transactions, self._adder, self._changer, self._ledger)
        lookahead = LookaheadJudge(name, self._schedules, self._adder, self._changer, self._ledger)
        self._exchanger = Exchanger(name, transactions, self._listing, self._changer, lookahead)
        self._upkeep = Upkeep(name, transactions, self._changer, self._ledger, self._operations, self._records)
        self._moving = Moving(name, transactions, seals, self._listing, self._adder)

    # Its life.

    def open(self) -> None:
        self._database.open()
        schema.migrate(self._database, self.namespace)
        self._database.keep_watch(Epoch(self.namespace, self.path))
        self._notifier.open()

    def _reopened(self) -> None:
        """Another file took the place of the one before: what was known of that does not hold."""
        schema.check_current(self._database, self.namespace)
        self._blocks.void()

    def is_missing(self) -> bool:
        return not is_there(self.path)

    def pending_migrations(self) -> list[str]:
        if self.is_missing():
            return schema.scripts_after(0, self.namespace)
        return schema.pending(Database(self.path), self.namespace)

    def namespaces(self) -> list[str]:
        return [] if self.is_missing() else schema.namespaces(Database(self.path))

    def close(self) -> None:
        self._notifier.close()
        self._database.close()

    def describe(self) -> str:
        named = "" if self.namespace == "rota" else f", namespace {self.namespace}"
        return f"sqlite file {self.path}{named}"

    def now(self) -> int:
        return clock.wall_now()

    def listen(self, channel: c.Channel) -> c.Listener:
        return self._notifier.listen(channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[c.Added]:
        return self._adder.add_jobs(jobs, now)

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[c.Added]:
        return self._adder.add_jobs_in(transaction, jobs)

    def exchange(self, ask: c.Exchange, *, now: int | None = None) -> c.Exchanged:
        return self._exchanger.exchange(ask, now)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        return self._exchanger.settle_in(transaction, holder, change)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> c.Extended:
        return self._leases.extend(holder, leases, lease_for, now)

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self._leases.lapsed_jobs(limit, now)

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[c.Refusal]:
        return self._leases.rescue_jobs(changes, now)

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

    # Queues, nodes, logs and locks.

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
        self,
        job_id: str,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = c.LARGEST_PAGE,
    ) -> list[c.LogLine]:
        return self._operations.list_logs(job_id, after, start, end, limit)

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        return self._operations.acquire_lock(name, token, ttl, now)

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        return self._operations.extend_lock(name, token, ttl, now)

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        return self._operations.release_lock(name, token, now)

    # Upkeep and copies.

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
