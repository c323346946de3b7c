"""Wraps a store, so that every call passes through one method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rota.store.contract import LARGEST_BATCH, LARGEST_PAGE, MOST_COUNTED, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    from rota.store.contract import (
        Added,
        AuditFilter,
        Channel,
        Due,
        Exchange,
        Exchanged,
        Extended,
        Failure,
        Fired,
        JobFilter,
        LedgerSpan,
        Listener,
        LogLine,
        Node,
        Page,
        Part,
        Pruned,
        QueueInfo,
        Record,
        Refusal,
        Removal,
        Retention,
        ScheduleFilter,
        Seal,
    )

Reply = TypeVar("Reply")

READS = frozenset(
    {
        "now", "expired_jobs", "get_jobs", "list_jobs", "count_jobs", "list_failures", "get_schedules",
        "list_schedules", "list_many_occurrences", "list_queues", "read_series", "list_nodes", "list_logs",
        "recount", "sealed", "dump", "get_entries", "list_entries", "list_audit_records",
    }
)  # fmt: skip  # not due_schedules: what was found due, and when, is what a firing was decided on


class Relay(Store):
    """Forwards every call. Subclasses define what happens around it (`relay`) and at what time (`at`)."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.features = inner.features
        self.namespace = inner.namespace

    def relay(self, verb: str, args: tuple[Any, ...], call: Callable[[], Reply]) -> Reply:  # noqa: ARG002 - for others
        return call()

    def at(self, now: int | None) -> int | None:
        return now

    # Opening and closing.

    def open(self) -> None:
        self.inner.open()

    def pending_migrations(self) -> list[str]:
        return self.inner.pending_migrations()

    def is_missing(self) -> bool:
        return self.inner.is_missing()

    def namespaces(self) -> list[str]:
        return self.inner.namespaces()

    def close(self) -> None:
        self.inner.close()

    def describe(self) -> str:
        return self.inner.describe()

    def now(self) -> int:
        return self.relay("now", (), self.inner.now)

    def listen(self, channel: Channel) -> Listener:
        return self.inner.listen(channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        return self.relay("add_jobs", (jobs,), lambda: self.inner.add_jobs(jobs, now=self.at(now)))

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        return self.relay("exchange", (ask,), lambda: self.inner.exchange(ask, now=self.at(now)))

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        return self.relay(
            "extend_leases",
            (holder, leases, lease_for),
            lambda: self.inner.extend_leases(holder, leases, lease_for, now=self.at(now)),
        )

    def expired_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self.relay("expired_jobs", (limit,), lambda: self.inner.expired_jobs(limit, now=self.at(now)))

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        return self.relay("rescue_jobs", (changes,), lambda: self.inner.rescue_jobs(changes, now=self.at(now)))

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        return self.relay("change_jobs", (changes,), lambda: self.inner.change_jobs(changes, now=self.at(now)))

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        return self.relay(
            "request_cancels", (ids, reason), lambda: self.inner.request_cancels(ids, reason, now=self.at(now))
        )

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        return self.relay("record_progress", (reports,), lambda: self.inner.record_progress(holder, reports))

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        return self.relay("delete_jobs", (ids,), lambda: self.inner.delete_jobs(ids, now=self.at(now)))

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self.relay("get_jobs", (ids,), lambda: self.inner.get_jobs(ids))

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        return self.relay("list_jobs", (where,), lambda: self.inner.list_jobs(where, cursor=cursor, limit=limit))

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        return self.relay("edit_schedules", (edits,), lambda: self.inner.edit_schedules(edits, now=self.at(now)))

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        return self.relay("get_schedules", (ids,), lambda: self.inner.get_schedules(ids))

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        return self.relay(
            "list_schedules", (where,), lambda: self.inner.list_schedules(where, cursor=cursor, limit=limit)
        )

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        return self.relay("due_schedules", (limit,), lambda: self.inner.due_schedules(limit, now=self.at(now)))

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        return self.relay("fire", (firings,), lambda: self.inner.fire(firings, now=self.at(now)))

    def list_many_occurrences(self, spans: Sequence[LedgerSpan], *, limit: int = 50) -> list[Page[Occurrence]]:
        return self.relay(
            "list_many_occurrences", (spans,), lambda: self.inner.list_many_occurrences(spans, limit=limit)
        )

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        return self.relay("edit_entries", (edits,), lambda: self.inner.edit_entries(edits, now=self.at(now)))

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        return self.relay("get_entries", (kind, names), lambda: self.inner.get_entries(kind, names))

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        return self.relay("list_entries", (kind,), lambda: self.inner.list_entries(kind, cursor=cursor, limit=limit))

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        return self.relay("add_audit_records", (records,), lambda: self.inner.add_audit_records(records))

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        return self.relay(
            "list_audit_records", (where,), lambda: self.inner.list_audit_records(where, cursor=cursor, limit=limit)
        )

    # Queues, nodes, logs, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        return self.relay("pause_queue", (queue, paused), lambda: self.inner.pause_queue(queue, paused=paused))

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        return self.relay("list_queues", (), lambda: self.inner.list_queues(now=self.at(now)))

    def record_heartbeat(self, node: Node, *, now: int | None = None) -> int:
        return self.relay("record_heartbeat", (node,), lambda: self.inner.record_heartbeat(node, now=self.at(now)))

    def list_nodes(self) -> list[Node]:
        return self.relay("list_nodes", (), self.inner.list_nodes)

    def forget_node(self, node_id: str) -> None:
        return self.relay("forget_node", (node_id,), lambda: self.inner.forget_node(node_id))

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        return self.relay("append_logs", (lines,), lambda: self.inner.append_logs(lines))

    def list_logs(
        self,
        job_id: str,
        *,
        after: int = 0,
        start: int | None = None,
        end: int | None = None,
        limit: int = LARGEST_PAGE,
    ) -> list[LogLine]:
        return self.relay(
            "list_logs",
            (job_id,),
            lambda: self.inner.list_logs(job_id, after=after, start=start, end=end, limit=limit),
        )

    def change_lock(self, name: str, act: LockAct, token: str, ttl: int = 0, *, now: int | None = None) -> int | None:
        at = self.at(now)
        return self.relay("change_lock", (name,), lambda: self.inner.change_lock(name, act, token, ttl, now=at))

    def count_jobs(self, where: JobFilter, *, limit: int = MOST_COUNTED) -> int:
        return self.relay("count_jobs", (where,), lambda: self.inner.count_jobs(where, limit=limit))

    def list_failures(self, since: int, *, limit: int = LARGEST_BATCH) -> list[Failure]:
        return self.relay("list_failures", (since,), lambda: self.inner.list_failures(since, limit=limit))

    def read_series(self, start: int, end: int) -> list[Bucket]:
        return self.relay("read_series", (start, end), lambda: self.inner.read_series(start, end))

    def recount(self) -> dict[str, int]:
        return self.relay("recount", (), self.inner.recount)

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        return self.relay("prune", (retention, limit), lambda: self.inner.prune(retention, limit, now=self.at(now)))

    # Moving.

    def seal(self, seal: Seal | None) -> None:
        return self.relay("seal", (seal,), lambda: self.inner.seal(seal))

    def sealed(self) -> Seal | None:
        return self.relay("sealed", (), self.inner.sealed)

    def removal(self) -> Removal:
        return self.inner.removal()

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        return self.relay("dump", (part,), lambda: self.inner.dump(part, cursor=cursor, limit=limit))

    def load(self, records: Sequence[Record]) -> int:
        return self.relay("load", (records,), lambda: self.inner.load(records))
