"""A store made of parts. Each verb of the contract goes to the part that has its duty, under the verb's own name.

The parts have the same names and verbs in every store that is on a file or a server, so that knowing one is knowing
all. A new store writes these parts, and its own life: open, close, describe, now and listen. A store on a server leaves
close and describe to its connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from rota.store.contract import (
    LARGEST_BATCH,
    LARGEST_PAGE,
    MOST_COUNTED,
    AuditFilter,
    Page,
    QueueRecord,
    Store,
    check_cursor,
)
from rota.store.shared import forks
from rota.store.shared.importing import each_once
from rota.store.shared.paging import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry, EntryEdit
    from rota.model.jobs.job import Job, NewJob
    from rota.model.jobs.series import Bucket
    from rota.model.jobs.settle import Change
    from rota.model.lock import LockAct
    from rota.model.schedules.edit import Edit
    from rota.model.schedules.firing import Firing
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.store import contract as c

    Now = int | None  # None: the store's clock


OwnPart = Literal["locks", "entries", "occurrences", "jobs", "logs"]  # what no other verb lists


class Adder(Protocol):
    def add_jobs(self, jobs: Sequence[NewJob], now: Now, /) -> list[c.Added]: ...


class Exchanger(Protocol):
    def exchange(self, ask: c.Exchange, now: Now, /) -> c.Exchanged: ...


class Leases(Protocol):
    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: Now, /
    ) -> c.Extended: ...
    def expired_jobs(self, limit: int, now: Now, /) -> list[Job]: ...
    def request_cancels(self, ids: Sequence[str], reason: str, /) -> list[str]: ...
    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]], /) -> None: ...


class Changer(Protocol):
    def rescue_jobs(self, changes: Sequence[Change], now: Now, /) -> list[c.Refusal]: ...
    def change_jobs(self, changes: Sequence[Change], now: Now, /) -> list[c.Refusal]: ...
    def delete_jobs(self, ids: Sequence[str], /) -> list[str]: ...


class Listing(Protocol):
    def get_jobs(self, ids: Sequence[str], /) -> list[Job]: ...
    def list_jobs(self, where: c.JobFilter, cursor: str | None, limit: int, /) -> c.Page[Job]: ...
    def count_jobs(self, where: c.JobFilter, limit: int, /) -> int: ...
    def list_failures(self, since: int, limit: int, /) -> list[c.Failure]: ...


class Schedules(Protocol):
    def edit_schedules(self, edits: Sequence[Edit], now: Now, /) -> list[str]: ...
    def get_schedules(self, ids: Sequence[str], /) -> list[Schedule]: ...
    def list_schedules(self, where: c.ScheduleFilter | None, cursor: str | None, limit: int, /) -> c.Page[Schedule]: ...
    def due_schedules(self, limit: int, now: Now, /) -> c.Due: ...


class Firer(Protocol):
    def fire(self, firings: Sequence[Firing], now: Now, /) -> list[c.Fired]: ...


class Ledger(Protocol):
    def list_many_occurrences(self, spans: Sequence[c.LedgerSpan], limit: int, /) -> list[c.Page[Occurrence]]: ...


class Records(Protocol):
    def edit_entries(self, edits: Sequence[EntryEdit], /) -> list[str]: ...
    def get_entries(self, kind: str, names: Sequence[str], /) -> list[Entry]: ...
    def list_entries(self, kind: str, cursor: str | None, limit: int, /) -> c.Page[Entry]: ...
    def add_audit_records(self, records: Sequence[AuditRecord], /) -> None: ...
    def list_audit_records(self, where: c.AuditFilter, cursor: str | None, limit: int, /) -> c.Page[AuditRecord]: ...


class Operations(Protocol):
    def pause_queue(self, queue: str, /, *, paused: bool) -> None: ...
    def list_queues(self) -> list[c.QueueInfo]: ...
    def read_series(self, start: int, end: int, /) -> list[Bucket]: ...
    def record_heartbeat(self, node: c.Node, now: Now, /) -> int: ...
    def list_nodes(self) -> list[c.Node]: ...
    def forget_node(self, node_id: str, /) -> None: ...
    def append_logs(self, lines: Sequence[c.LogLine], /) -> None: ...
    def list_logs(self, job_id: str, after: int, start: Now, end: Now, limit: int, /) -> list[c.LogLine]: ...
    def change_lock(self, name: str, act: LockAct, token: str, ttl: int, now: Now, /) -> int | None: ...


class Upkeep(Protocol):
    def recount(self) -> dict[str, int]: ...
    def prune(self, retention: c.Retention, limit: int, now: Now, /) -> c.Pruned: ...


class Moving(Protocol):
    def seal(self, seal: c.Seal | None, /) -> None: ...
    def sealed(self) -> c.Seal | None: ...
    def dump(self, part: OwnPart, cursor: str | None, limit: int, /) -> c.Page[c.Record]: ...
    def load(self, records: Sequence[c.Record], /) -> int: ...


class PartedStore(Store):
    """The verbs, each delegated. A subclass sets the parts."""

    _adder: Adder
    _exchanger: Exchanger
    _leases: Leases
    _changer: Changer
    _listing: Listing
    _schedules: Schedules
    _firer: Firer
    _ledger: Ledger
    _records: Records
    _operations: Operations
    _upkeep: Upkeep
    _moving: Moving

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[c.Added]:
        return self._adder.add_jobs(jobs, now)

    def exchange(self, ask: c.Exchange, *, now: int | None = None) -> c.Exchanged:
        return self._exchanger.exchange(ask, now)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> c.Extended:
        return self._leases.extend_leases(holder, leases, lease_for, now)

    def expired_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
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
        return self._listing.list_jobs(where, check_cursor(cursor), limit)

    def count_jobs(self, where: c.JobFilter, *, limit: int = MOST_COUNTED) -> int:
        return self._listing.count_jobs(where, limit)

    def list_failures(self, since: int, *, limit: int = LARGEST_BATCH) -> list[c.Failure]:
        return self._listing.list_failures(since, limit)

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

    def list_many_occurrences(self, spans: Sequence[c.LedgerSpan], *, limit: int = 50) -> list[c.Page[Occurrence]]:
        return self._ledger.list_many_occurrences(spans, limit) if spans else []

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        del now  # each edit has its own
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

    # Queues, nodes, logs, locks, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        self._operations.pause_queue(queue, paused=paused)

    def list_queues(self, *, now: int | None = None) -> list[c.QueueInfo]:
        del now
        return self._operations.list_queues()

    def read_series(self, start: int, end: int) -> list[Bucket]:
        return self._operations.read_series(start, end)

    def record_heartbeat(self, node: c.Node, *, now: int | None = None) -> int:
        return self._operations.record_heartbeat(node, now)

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
        limit: int = LARGEST_PAGE,
    ) -> list[c.LogLine]:
        return self._operations.list_logs(job_id, after, start, end, limit)

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int = 0, *, now: int | None = None) -> int | None:
        return self._operations.change_lock(name, act, token, ttl, now)

    def recount(self) -> dict[str, int]:
        return self._upkeep.recount()

    def prune(self, retention: c.Retention, limit: int, *, now: int | None = None) -> c.Pruned:
        return self._upkeep.prune(retention, limit, now)

    # Copying to another store.

    def seal(self, seal: c.Seal | None) -> None:
        self._moving.seal(seal)

    def sealed(self) -> c.Seal | None:
        return self._moving.sealed()

    def dump(self, part: c.Part, *, cursor: str | None = None, limit: int = 500) -> c.Page[c.Record]:
        match part:
            case "queues":
                return _queue_page(self.list_queues(), cursor, limit)
            case "schedules":
                schedules = self.list_schedules(cursor=cursor, limit=limit)
                return Page([*schedules.items], schedules.cursor)
            case "audit_records":
                audits = self.list_audit_records(AuditFilter(), cursor=cursor, limit=limit)
                return Page([*audits.items], audits.cursor)
            case _:
                return self._moving.dump(part, cursor, limit)

    def load(self, records: Sequence[c.Record]) -> int:
        return self._moving.load(each_once(records))


class TransactionalAdder(Adder, Protocol):
    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob], /) -> list[c.Added]: ...


class Settler(Protocol):
    def settle_in(self, transaction: object, holder: str, change: Change, /) -> bool: ...


class TransactionalStore(PartedStore):
    """A store that also writes in transactions of its callers."""

    _adder: TransactionalAdder
    _settler: Settler

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[c.Added]:
        return self._adder.add_jobs_in(transaction, jobs)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        return self._settler.settle_in(transaction, holder, change)


class ServerConnection(Protocol):
    """What a store on a server has open."""

    def describe(self) -> str: ...
    def after_fork(self) -> None: ...
    def close(self) -> None: ...


class ServerStore(PartedStore, forks.Forked):
    """A store on a server: its connection says what it is called, and ends with it."""

    def __init__(self, server: ServerConnection, namespace: str) -> None:
        self.namespace = namespace
        self._server = server
        forks.register(self)

    def describe(self) -> str:
        return self._server.describe()

    def after_fork(self) -> None:
        self._server.after_fork()

    def close(self) -> None:
        self._server.close()


def _queue_page(infos: Sequence[c.QueueInfo], cursor: str | None, limit: int) -> c.Page[c.Record]:
    """Queues are few: all are read, and those after the cursor shown."""
    rest = [info for info in infos if cursor is None or info.name > cursor]
    page = page_of(rest, limit, lambda info: info.name)
    records = [QueueRecord(name=info.name, is_paused=info.is_paused, totals=info.totals) for info in page.items]
    return Page([*records], page.cursor)
