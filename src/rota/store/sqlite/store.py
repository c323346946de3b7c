"""SqliteStore: the contract on one SQLite file. Each verb is one transaction; the tables do the work."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rota.failpoints import reach
from rota.model.names import check_namespace
from rota.model.state import FINAL, State
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
from rota.store.shared.claiming import open_queues
from rota.store.shared.counting import Counts
from rota.store.shared.matching import check_cursor, is_held_by, is_running, is_same
from rota.store.shared.pruning import jobs_to_prune
from rota.store.shared.unpacking import node_from
from rota.store.sqlite import schema
from rota.store.sqlite.adding import Intake
from rota.store.sqlite.clock import lease_now, wall_now
from rota.store.sqlite.connection import Database
from rota.store.sqlite.firing import Firer
from rota.store.sqlite.identity import Epoch, is_there
from rota.store.sqlite.jobs import JobTable
from rota.store.sqlite.ledger import Ledger
from rota.store.sqlite.listing import Listing
from rota.store.sqlite.locks import LockTable
from rota.store.sqlite.lookahead import LookaheadJudge
from rota.store.sqlite.marks import Marks
from rota.store.sqlite.moving import Dumper, Loader, Seals
from rota.store.sqlite.notify import Notifier
from rota.store.sqlite.records import AuditTable, EntryTable
from rota.store.sqlite.rows import state_of
from rota.store.sqlite.schedules import ScheduleTable
from rota.store.sqlite.transactions import check_transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.model.edit import Edit
    from rota.model.entry import Entry, EntryEdit
    from rota.model.firing import Firing
    from rota.model.job import Job, NewJob
    from rota.model.occurrence import Occurrence
    from rota.model.schedule import Schedule
    from rota.model.settle import Change
    from rota.store.contract import AuditFilter, Channel, Listener, Part, Record, Seal
    from rota.store.shared.pruning import Ended


class SqliteStore(Store):
    """One file, shared by any number of threads and processes of one host."""

    features = Features(
        kind="sqlite", is_durable=True, is_shared=True, enqueues_in_transactions=True, has_lease_clock=True
    )

    def __init__(self, path: str | Path, *, namespace: str = "rota") -> None:
        self.path: Path = Path(path).absolute()
        self.namespace = check_namespace(namespace)
        self._database = Database(self.path, self._reopened)
        self._notifier = Notifier(self.path.with_name(self.path.name + "-notify"))
        self._ledger = Ledger(self.namespace)
        self._marks = Marks(self.namespace)
        self._jobs = JobTable(self.namespace, self._ledger, self._marks)
        self._firer = Firer(self.namespace, self._jobs, self._ledger)
        self._guest_marks = Marks(self.namespace)  # of transactions that may come to nothing: never kept
        self._guests = Intake(self.namespace, self._guest_marks)
        self._listing = Listing(self.namespace, self._marks)
        self._locks = LockTable(self.namespace)
        self._seals = Seals(self.namespace)
        self._dumper = Dumper(self.namespace)
        self._loader = Loader(self.namespace, self._jobs)
        self._audit = AuditTable(self.namespace)
        self._entries = EntryTable(self.namespace, self._audit)
        self._schedules = ScheduleTable(self.namespace, self._jobs, self._ledger, self._audit)
        self._lookahead = LookaheadJudge(self._schedules, self._jobs, self._ledger)

    def open(self) -> None:
        self._database.open()
        schema.migrate(self._database, self.namespace)
        self._database.keep_watch(Epoch(self.namespace, self.path))
        self._notifier.open()

    def _reopened(self) -> None:
        """Another file took the place of the one before: what was known of that is void."""
        schema.check_current(self._database, self.namespace)
        self._marks.void()

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
        return wall_now()

    def listen(self, channel: Channel) -> Listener:
        return self._notifier.listen(channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        with self._work("add") as (connection, counts):
            added = self._jobs.add(connection, jobs, self._at(now), counts)
        self._notifier.notify("jobs")
        return added

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        at = self._at(now)
        if not ask.settled:
            idle = self._if_idle(ask, at)
            if idle is not None:
                return idle
        begin = self._work if ask.want > 0 else self._write
        with begin("exchange") as (connection, counts):
            at = self._at(now)  # anew: another process's transaction may have taken a while
            refused = self._settle(connection, ask, at, counts)
            queues = self._open_queues(connection, ask.queues)
            claimed = []
            if ask.want > 0:
                self._lookahead.judge_due(connection, queues, at, counts)
                self._jobs.promote(connection, queues, at, ask.ahead, counts)
                claimed = self._jobs.claim(connection, ask, queues, at, lease_now(now), counts)
            next_due = self._jobs.next_due(connection, queues)
            others_can_go_on = counts.grew(State.QUEUED, State.SCHEDULED)
        if others_can_go_on:
            self._notifier.notify("jobs")
        return Exchanged(now=at, refused=refused, claimed=claimed, next_due_at=next_due)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        lost: list[str] = []
        if leases:
            lease_at, boot = lease_now(now)
            with self._write("extend") as (connection, _):
                lost = self._jobs.extend(connection, holder, leases, lease_at + lease_for, boot)
        with self._database.read() as connection:
            return Extended(now=self._at(now), lost=lost, cancels=self._jobs.cancels(connection, holder))

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        with self._database.read() as connection:
            return self._jobs.lapsed(connection, limit, lease_now(now))

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        with self._write("change") as (connection, counts):
            lapsed = self._jobs.lapsed_among(connection, [change.job.seq for change in changes], lease_now(now))
            refused = self._jobs.settle(
                connection,
                changes,
                self._at(now),
                counts,
                lambda change, job: is_same(change, job) and job.seq in lapsed,
            )
        self._notifier.notify("jobs")
        return refused

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        with self._work("change") as (connection, counts):
            refused = self._jobs.settle(
                connection,
                changes,
                self._at(now),
                counts,
                lambda change, job: is_same(change, job) and not is_running(job),
            )
        self._notifier.notify("jobs")
        return refused

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        with self._database.write() as connection:
            return self._jobs.request_cancels(connection, ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        rows = [(text, job_id, lease_no, holder) for job_id, lease_no, text in reports]
        with self._database.write() as connection:
            connection.executemany(
                f"UPDATE {self.namespace}_job SET progress = ? "
                "WHERE id = ? AND state = 'running' AND lease_no = ? AND holder = ?",
                rows,
            )

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        del now
        with self._work("delete") as (connection, counts):
            return self._jobs.remove(connection, ids, counts)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        with self._database.read() as connection:
            return self._jobs.get(connection, ids)

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        with self._database.snapshot() as connection:
            return self._listing.page(connection, where, check_cursor(cursor), limit)

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        connection = check_transaction(transaction, self.path)
        self._refuse_if_sealed(connection)
        counts = Counts()
        self._guest_marks.begin()
        added = self._guests.add(connection, jobs, wall_now(), counts)
        self._keep_counts(connection, counts)
        return added

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        connection = check_transaction(transaction, self.path)
        counts = Counts()
        ask = Exchange(holder=holder, settled=[change])
        refused = self._settle(connection, ask, wall_now(), counts)
        self._keep_counts(connection, counts)
        return not refused

    # Schedules and occurrences.

    def edit_schedules(self, edits: Sequence[Edit], *, now: int | None = None) -> list[str]:
        with self._work("edit") as (connection, counts):
            at = self._at(now)
            refused = [edit.id for edit in edits if not self._schedules.edit(connection, edit, at, counts)]
        self._notifier.notify("schedules")
        self._notifier.notify("jobs")
        return refused

    def get_schedules(self, ids: Sequence[str]) -> list[Schedule]:
        with self._database.read() as connection:
            return self._schedules.get(connection, ids)

    def list_schedules(
        self, where: ScheduleFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Schedule]:
        with self._database.read() as connection:
            return self._schedules.page(connection, where or ScheduleFilter(), cursor, limit)

    def due_schedules(self, limit: int, *, now: int | None = None) -> Due:
        with self._database.read() as connection:
            due, broken = self._schedules.due(connection, limit, self._at(now))
        if broken:
            with self._database.write() as connection:
                self._schedules.set_aside(connection, broken)
        return due

    def fire(self, firings: Sequence[Firing], *, now: int | None = None) -> list[Fired]:
        with self._work("fire") as (connection, counts):
            at = self._at(now)
            results = self._firer.fire(connection, firings, at, counts)
        self._notifier.notify("jobs")
        return results

    def list_occurrences(
        self, schedule_id: str, start: int, end: int, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Occurrence]:
        with self._database.read() as connection:
            return self._ledger.page(connection, schedule_id, start, end, check_cursor(cursor), limit)

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        del now
        with self._work("entries") as (connection, _):
            return [edit.name for edit in edits if not self._entries.edit(connection, edit)]

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        with self._database.read() as connection:
            return self._entries.get(connection, kind, names)

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        with self._database.read() as connection:
            return self._entries.page(connection, kind, cursor, limit)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        with self._database.write() as connection:
            self._audit.add(connection, records)

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        with self._database.read() as connection:
            return self._audit.page(connection, where, cursor, limit)

    # Queues, nodes, logs, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        with self._database.write() as connection:
            self._refuse_if_sealed(connection)
            connection.execute(f"INSERT OR REPLACE INTO {self.namespace}_queue VALUES (?, ?)", (queue, int(paused)))
        self._notifier.notify("jobs")

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        del now
        with self._database.read() as connection:
            counts = self._kept_counts(connection)
            paused = self._paused(connection)
            names = sorted(paused | counts.queues())
            return [
                counts.info(name, is_paused=name in paused, oldest_at=self._jobs.oldest_ready(connection, name))
                for name in names
            ]

    def beat(self, node: Node, *, now: int | None = None) -> int:
        with self._database.write() as connection:
            at = self._at(now)  # not before: a wait for the lock would set the node's clock back
            data = msgspec.json.encode(msgspec.structs.replace(node, beat_at=at)).decode()
            connection.execute(f"INSERT OR REPLACE INTO {self.namespace}_node VALUES (?, ?, ?)", (node.id, at, data))
        return at

    def list_nodes(self) -> list[Node]:
        with self._database.read() as connection:
            rows = connection.execute(f"SELECT id, data FROM {self.namespace}_node ORDER BY id")
            return [node_from(node_id, data) for node_id, data in rows]

    def forget_node(self, node_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(f"DELETE FROM {self.namespace}_node WHERE id = ?", (node_id,))

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        rows = [(line.job_id, line.job_id, line.at, line.level, line.text, line.job_id) for line in lines]
        last = f"SELECT max(number) FROM {self.namespace}_log WHERE job_id = ?"
        with self._database.write() as connection:
            connection.executemany(
                f"INSERT INTO {self.namespace}_log (job_id, number, at, level, text) "
                f"SELECT ?, 1 + coalesce(({last}), 0), ?, ?, ? "
                f"WHERE EXISTS (SELECT 1 FROM {self.namespace}_job WHERE id = ?)",
                rows,
            )

    def list_logs(
        self, job_id: str, *, after: int = 0, start: int | None = None, end: int | None = None, limit: int = 200
    ) -> list[LogLine]:
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT number, at, level, text FROM {self.namespace}_log "
                "WHERE job_id = ? AND number > ? AND (? IS NULL OR at >= ?) AND (? IS NULL OR at < ?) "
                "ORDER BY number LIMIT ?",
                (job_id, after, start, start, end, end, limit),
            )
            return [LogLine(job_id=job_id, number=row[0], at=row[1], level=row[2], text=row[3]) for row in rows]

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        with self._database.write() as connection:
            self._refuse_if_sealed(connection)
            return self._locks.acquire(connection, name, token, ttl, lease_now(now))

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        with self._database.write() as connection:
            return self._locks.extend(connection, name, token, ttl, lease_now(now))

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        with self._database.write() as connection:
            return self._locks.release(connection, name, token, lease_now(now))

    def recount(self) -> dict[str, int]:
        with self._database.write() as connection:  # a write, so that nothing moves in between
            jobs = connection.execute(f"SELECT queue, state FROM {self.namespace}_job").fetchall()
            return self._kept_counts(connection).differences((queue, state_of(state)) for queue, state in jobs)

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        at = self._at(now)
        with self._work("prune") as (connection, counts):

            def find(state: State, through: int, most: int) -> list[Ended]:
                return self._jobs.ended(connection, state, through, at, most)

            ids = jobs_to_prune(retention, limit, at, self._ended(connection), find)
            removed = self._jobs.remove(connection, ids, counts)
            if removed:
                self._marks.forget(connection)
            lines = self._ledger.prune(connection, retention, at, limit)
            nodes = connection.execute(
                f"DELETE FROM {self.namespace}_node WHERE beat_at <= ?",
                (at - retention.nodes_for,),
            ).rowcount
            audit_records = self._audit.prune(connection, at - retention.audit_for, limit)
        return Pruned(len(removed), lines, nodes, audit_records)

    # Moving.

    def seal(self, seal: Seal | None) -> None:
        with self._database.write() as connection:
            self._seals.put(connection, seal)
        self._notifier.notify("jobs")
        self._notifier.notify("schedules")

    def sealed(self) -> Seal | None:
        with self._database.read() as connection:
            return self._seals.get(connection)

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        with self._database.read() as connection:
            return self._dumper.page(connection, part, cursor, limit)

    def load(self, records: Sequence[Record]) -> int:
        with self._write("load") as (connection, counts):
            return self._loader.load(connection, records, counts)

    # What the verbs are made of.

    def _at(self, now: int | None) -> int:
        return wall_now() if now is None else now

    @contextmanager
    def _write(self, verb: str, *, is_work: bool = False) -> Iterator[tuple[sqlite3.Connection, Counts]]:
        """A transaction that also writes the counters which it changes."""
        with self._database.write() as connection:
            if is_work:
                self._refuse_if_sealed(connection)
            self._marks.begin()
            counts = Counts()
            yield connection, counts
            reach(f"{verb}.before_commit")
            self._keep_counts(connection, counts)
            fresh = self._marks.fresh()
        self._marks.keep(fresh)
        reach(f"{verb}.after_commit")

    def _work(self, verb: str) -> AbstractContextManager[tuple[sqlite3.Connection, Counts]]:
        """A transaction that brings or wants work, or changes what waits: a sealed store refuses it."""
        return self._write(verb, is_work=True)

    def _refuse_if_sealed(self, connection: sqlite3.Connection) -> None:
        seal = self._seals.get(connection)
        if seal is not None:
            raise seal.refusal(self.describe())

    def _keep_counts(self, connection: sqlite3.Connection, counts: Counts) -> None:
        connection.executemany(
            f"INSERT INTO {self.namespace}_count VALUES (?, ?, ?) "
            "ON CONFLICT (queue, name) DO UPDATE SET n = n + excluded.n",
            counts.rows(),
        )

    def _if_idle(self, ask: Exchange, now: int) -> Exchanged | None:
        """The answer where there is nothing to claim, without a write."""
        with self._database.read() as connection:
            if ask.want > 0:
                self._refuse_if_sealed(connection)
            queues = self._open_queues(connection, ask.queues)
            if queues and ask.want > 0 and self._jobs.has_work(connection, queues, now + ask.ahead):
                return None
            return Exchanged(now=now, next_due_at=self._jobs.next_due(connection, queues))

    def _settle(self, connection: sqlite3.Connection, ask: Exchange, now: int, counts: Counts) -> list[Refusal]:
        if not ask.settled or self._jobs.end(connection, ask.holder, ask.settled, now, counts):
            return []
        holds = partial(is_held_by, ask.holder)
        return self._jobs.settle(connection, ask.settled, now, counts, holds)

    def _open_queues(self, connection: sqlite3.Connection, queues: Sequence[str]) -> list[str]:
        return open_queues(queues, self._paused(connection))

    def _paused(self, connection: sqlite3.Connection) -> set[str]:
        rows = connection.execute(f"SELECT name FROM {self.namespace}_queue WHERE is_paused")
        return {name for (name,) in rows}

    def _kept_counts(self, connection: sqlite3.Connection) -> Counts:
        rows = connection.execute(f"SELECT queue, name, n FROM {self.namespace}_count")
        return Counts({(queue, name): number for queue, name, number in rows})

    def _ended(self, connection: sqlite3.Connection) -> int:
        ended = {state.value for state in FINAL}
        rows = connection.execute(f"SELECT name, sum(n) FROM {self.namespace}_count GROUP BY name")
        return sum(number for name, number in rows if name in ended)
