"""RedisStore: the contract on Redis or Valkey. Each verb is one script, or one that reads and one that commits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from rota.model.clock_repair import TOLERANCE
from rota.model.names import check_namespace
from rota.store.contract import (
    Added,
    AuditFilter,
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
from rota.store.redis import schema
from rota.store.redis.adding import Intake
from rota.store.redis.address import client_of, place_of
from rota.store.redis.changing import Changer
from rota.store.redis.desk import Desk, text_of
from rota.store.redis.firing import Firer
from rota.store.redis.judging import Judge
from rota.store.redis.ledger import list_occurrences
from rota.store.redis.link import Link
from rota.store.redis.logs import append_logs, list_logs
from rota.store.redis.moving import Mover
from rota.store.redis.notify import ChannelListener
from rota.store.redis.reading import Reader
from rota.store.redis.records import Records
from rota.store.redis.schedules import ScheduleBook
from rota.store.redis.upkeep import Housekeeper
from rota.store.redis.working import Exchanger
from rota.store.shared.matching import has_lapsed, is_running, is_same
from rota.store.shared.unpacking import node_from

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
    from rota.store.contract import Channel, Listener, Part, Record, Seal

log = logging.getLogger("rota.store.redis")


class RedisStore(Store):
    """One namespace on one server, shared by any number of threads, processes and hosts."""

    features = Features(kind="redis", is_durable=True, is_shared=True)

    def __init__(self, server: str | Redis | RedisCluster, *, namespace: str = "rota") -> None:
        """`server` is a URL, or a client that the caller has and keeps: it is used, and never closed."""
        self.namespace = check_namespace(namespace)
        is_url = isinstance(server, str)
        client = client_of(server) if isinstance(server, str) else server
        self._link = Link(client, self.namespace, place_of(client), is_ours=is_url)
        self._has_warned = False
        desk = Desk(self._link)
        self._desk = desk
        self._changer = Changer(desk)
        self._intake = Intake(desk)
        self._schedules = ScheduleBook(desk)
        self._firer = Firer(desk, self._schedules)
        self._exchanger = Exchanger(desk, self._changer, Judge(desk, self._schedules))
        self._reader = Reader(desk)
        self._records = Records(desk)
        self._housekeeper = Housekeeper(desk, self._reader)
        self._mover = Mover(desk, self._schedules, self._records, self._housekeeper)

    def open(self) -> None:
        schema.check_server(self._info(), self._link.place)
        found = self._version()
        if not schema.check_version(found, self._link.place):
            schema.check_older(self._link, found)
            self._link.command("HSET", f"{self._link.prefix}meta", "version", schema.VERSION)
        self._link.open()
        if not self._has_warned:
            self._has_warned = True
            for warning in self.warnings():
                log.warning("%s", warning)

    def pending_migrations(self) -> list[str]:
        schema.check_server(self._info(), self._link.place)
        is_there = schema.check_version(self._version(), self._link.place)
        return [] if is_there else [f"HSET {self._link.prefix}meta version {schema.VERSION}"]

    def namespaces(self) -> list[str]:
        return self._link.namespaces()

    def close(self) -> None:
        self._link.close()

    def describe(self) -> str:
        return self._link.description

    def warnings(self) -> list[str]:
        """What in the server's settings may lose jobs, for people."""
        return schema.settings_warnings(self._link)

    def now(self) -> int:
        return self._desk.look()[0]

    def listen(self, channel: Channel) -> Listener:
        return ChannelListener(self._link, channel)

    # Jobs.

    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        return self._intake.add(jobs, now)

    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        return self._exchanger.exchange(ask, now)

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        return self._exchanger.extend(holder, leases, lease_for, now)

    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        return self._reader.lapsed(limit, now)

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        def holds(change: Change, job: Job, at: int) -> bool:
            return is_same(change, job) and has_lapsed(job, at)

        return self._changer.change("change", changes, holds, now=now)

    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        def holds(change: Change, job: Job, _: int) -> bool:
            return is_same(change, job) and not is_running(job)

        return self._changer.change("change", changes, holds, now=now, is_work=True)

    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        del now  # a request has no time of its own
        return self._exchanger.request_cancels(ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        self._exchanger.record_progress(holder, reports)

    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        del now
        return self._housekeeper.delete(ids)

    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        return self._reader.get(ids)

    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        return self._reader.page(where, cursor, limit)

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
        return list_occurrences(self._desk, schedule_id, start, end, cursor, limit)

    # Entries and audit records.

    def edit_entries(self, edits: Sequence[EntryEdit], *, now: int | None = None) -> list[str]:
        del now
        return self._records.edit(edits)

    def get_entries(self, kind: str, names: Sequence[str]) -> list[Entry]:
        return self._records.get(kind, names)

    def list_entries(self, kind: str, *, cursor: str | None = None, limit: int = 50) -> Page[Entry]:
        return self._records.page(kind, cursor, limit)

    def add_audit_records(self, records: Sequence[AuditRecord]) -> None:
        self._records.add_audit_records(records)

    def list_audit_records(
        self, where: AuditFilter, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AuditRecord]:
        return self._records.notes(where, cursor, limit)

    # Queues, nodes, logs, locks, upkeep.

    def pause_queue(self, queue: str, *, paused: bool) -> None:
        write = ["HSET", "paused", queue, 1] if paused else ["HDEL", "paused", queue]
        self._desk.write(write, channels=["jobs"], is_work=True)

    def list_queues(self, *, now: int | None = None) -> list[QueueInfo]:
        del now
        return self._housekeeper.queues()

    def beat(self, node: Node, *, now: int | None = None) -> int:
        return self._link.call("beat", now=text_of(now), id=node.id, node=msgspec.json.encode(node).decode()).now

    def list_nodes(self) -> list[Node]:
        rows, beats = self._desk.ask(["HGETALL", "node"], ["ZRANGE", "beats", 0, -1, "WITHSCORES"])
        beat_at = dict(zip(beats[::2], beats[1::2], strict=True))
        nodes = [
            node_from(name.decode(), packed, int(float(beat_at.get(name, 0))))
            for name, packed in zip(rows[::2], rows[1::2], strict=True)
        ]
        return sorted(nodes, key=lambda node: node.id)

    def forget_node(self, node_id: str) -> None:
        self._desk.write(["HDEL", "node", node_id], ["ZREM", "beats", node_id])

    def append_logs(self, lines: Sequence[LogLine]) -> None:
        append_logs(self._desk, lines)

    def list_logs(
        self, job_id: str, *, after: int = 0, start: int | None = None, end: int | None = None, limit: int = 200
    ) -> list[LogLine]:
        return list_logs(self._desk, job_id, after, start, end, limit)

    def acquire_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> int | None:
        return self._lock("acquire", name, token, ttl, now) or None

    def extend_lock(self, name: str, token: str, ttl: int, *, now: int | None = None) -> bool:
        return self._lock("extend", name, token, ttl, now) > 0

    def release_lock(self, name: str, token: str, *, now: int | None = None) -> bool:
        return self._lock("release", name, token, 0, now) > 0

    def recount(self) -> dict[str, int]:
        return self._housekeeper.recount()

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        return self._housekeeper.prune(retention, limit, now)

    # Moving.

    def seal(self, seal: Seal | None) -> None:
        self._mover.seal(seal)

    def sealed(self) -> Seal | None:
        return self._mover.sealed()

    def dump(self, part: Part, *, cursor: str | None = None, limit: int = 500) -> Page[Record]:
        return self._mover.dump(part, cursor, limit)

    def load(self, records: Sequence[Record]) -> int:
        return self._mover.load(records)

    # What the verbs are made of.

    def _lock(self, act: str, name: str, token: str, ttl: int, now: int | None) -> int:
        reply = self._link.call(
            "lock",
            now=text_of(now),
            is_work=act == "acquire",
            act=act,
            lock=name,
            token=token,
            ttl=ttl,
            tolerance=TOLERANCE,
        )
        return int(reply.body)

    def _info(self) -> dict[str, object]:
        found = {}
        for section in ("server", "replication"):
            found.update(self._link.command("INFO", section))
        return found

    def _version(self) -> bytes | str | None:
        version: bytes | str | None = self._link.command("HGET", f"{self._link.prefix}meta", "version")
        return version
