"""Fills a store with some of everything and reads all of it back, for tests of what a copy must carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.audit_record import AuditRecord
from rota.model.entry import EntryEdit
from rota.model.jobs.job import Job
from rota.model.jobs.outcome import Failed, Returned
from rota.model.jobs.settle import retry_by_hand
from rota.model.schedules.edit import disable, follow_pause, pause
from rota.model.schedules.schedule import Pause
from rota.store.memory import MemoryStore
from rota.testing.store_suite.builders import DAY, HOUR, LEASE, MINUTE, T0, a_job, a_line
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    cancelled_job,
    change_schedule,
    claim_one,
    fail,
    failed_job,
    fire,
    read,
    read_schedule,
    rescue_expired,
    running_job,
    settle_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.store.contract import Part, Record, Store

PARTS: tuple[Part, ...] = ("entries", "audit_records", "schedules", "occurrences", "jobs", "logs", "queues", "locks")
QUEUES = ("default", "mail", "slow", "many", "paused")
LATER = T0 + HOUR  # what furnish() does is over by then, except for delays and leases


def furnish(store: Store) -> None:
    """Add jobs of every state with a history, schedules, their records, logs, queues and locks."""
    _ended_jobs(store)
    _schedules(store)
    _records(store)
    _live_jobs(store)
    _queues_and_locks(store)


def furnish_by_load(store: Store) -> None:
    """The same as furnish(), in a few calls, for tests to which the operations do not matter."""
    source = MemoryStore()
    furnish(source)
    copy_all(source, store)


def everything(store: Store, *, limit: int = 500) -> dict[Part, list[Record]]:
    """All that a store holds, part by part, read in pages."""
    return {part: dumped(store, part, limit=limit) for part in PARTS}


def dumped(store: Store, part: Part, *, limit: int = 500) -> list[Any]:
    """Every page of one part."""
    records: list[Record] = []
    cursor: str | None = None
    while True:
        page = store.dump(part, cursor=cursor, limit=limit)
        assert len(page.items) <= limit
        records += page.items
        cursor = page.cursor
        if cursor is None:
            return records


def copy_all(source: Store, target: Store, *, limit: int = 500) -> int:
    """Load everything; return how many records were new."""
    return sum(target.load(records) for records in everything(source, limit=limit).values())


def movable(store: Store) -> dict[Part, list[Record]]:
    """Everything, without what a copy may change: positions, the ends of leases, and the order of small parts."""
    parts = everything(store)
    small: tuple[Part, ...] = ("entries", "audit_records", "schedules", "occurrences", "logs", "queues", "locks")
    ordered = {part: sorted(parts[part], key=msgspec.json.encode) for part in small}
    return {**ordered, "jobs": [carried(record) for record in parts["jobs"] if isinstance(record, Job)]}


def carried(job: Job) -> Job:
    """The fields of a job that a copy must carry."""
    return msgspec.structs.replace(job, seq=0, lease_until=None)


def _ended_jobs(store: Store) -> None:
    succeeded_job(store, payload=b'["caf\xc3\xa9"]', task="mail.welcome", priority=3)
    failed_job(store, queue="mail", key="gone")
    cancelled_job(store, queue="mail")
    succeeded_job(store, key="once a day", key_for=DAY)
    add_job(store, queue="slow", delay=MINUTE)
    assert succeed(store, claim_one(store, queues=("slow",), now=T0 + 2 * MINUTE), now=T0 + 2 * MINUTE + 1) == []
    again = failed_job(store, queue="slow")
    store.change_jobs([retry_by_hand(read(store, again), T0 + 1, "again, by ann")], now=T0 + 1)
    rescued = claim_one(store, queues=("slow",), now=T0 + 1)
    rescue_expired(store, now=T0 + LEASE + 1)
    assert fail(store, claim_one(store, queues=("slow",), now=T0 + LEASE + 2), now=T0 + LEASE + 3) == []
    store.append_logs([a_line(rescued.id, text, at=T0 + 5, level="error") for text in ("one", "two", "two")])
    store.append_logs([a_line(again, "three ☕\n")])


def _schedules(store: Store) -> None:
    """Add schedules: with a chain of held jobs, with all kinds of records, paused, disabled, two with unique keys."""
    add_schedule(store, "chained", catchup="all", overlap="queue", queue="many")
    fire(store, "chained", now=T0 + 3 * MINUTE + 1)
    add_schedule(store, "recorded", catchup="skip", queue="slow", description="Zürich")
    for minute in (5, 6, 7, 12):
        fire(store, "recorded", now=T0 + minute * MINUTE)
        job = claim_one(store, queues=("slow",), now=T0 + minute * MINUTE)
        assert succeed(store, job, now=T0 + minute * MINUTE + 1, keep=minute == 12) == []
    for minute in (13, 14):
        fire(store, "recorded", now=T0 + minute * MINUTE)  # the first is still live when the second is due
    add_schedule(store, "resting")
    until = T0 + 2 * HOUR
    change_schedule(store, pause(read_schedule(store, "resting"), T0, reason="rest", by="ann", until=until))
    add_schedule(store, "off", overlap="allow")
    change_schedule(store, disable(read_schedule(store, "off"), T0))
    add_schedule(store, "ahead", lookahead=3 * HOUR, trigger="every 1h", tenant="acme", queue="many")
    fire(store, "ahead", now=T0 + MINUTE)
    add_schedule(store, "unique", key="schedule:unique", key_for=HOUR, queue="many")
    fire(store, "unique", now=T0 + MINUTE)
    add_schedule(store, "unique-ahead", key="coming", lookahead=2 * HOUR, trigger="every 1h", queue="many")
    fire(store, "unique-ahead", now=T0 + MINUTE)
    add_schedule(store, "held-back", tenant="acme")
    change_schedule(store, follow_pause(read_schedule(store, "held-back"), Pause(T0, "rest", "ann", tenant="acme"), T0))


def _records(store: Store) -> None:
    edits = [EntryEdit(kind=kind, name=name, expect_version=0, data='"é"') for kind in ("b", "a") for name in "zy"]
    assert store.edit_entries(edits) == []
    assert store.edit_entries([EntryEdit(kind="a", name="y", expect_version=1, data="2")]) == []
    store.add_audit_records(
        [
            AuditRecord(id=f"n{number}", at=T0 + number, by="ann", verb="made", subject="tenant:a")
            for number in (2, 1, 10)
        ]
    )


def _live_jobs(store: Store) -> None:
    now = T0 + 20 * MINUTE
    retried = running_job(store, now=now)
    settle_job(store, retried, Failed("boom\ntrace"), now=now + 1, retries=2)
    back = running_job(store, now=now)
    settle_job(store, back, Returned(), now=now + 1)
    store.append_logs([a_line(back.id, "begun", at=now)])
    running = running_job(store, now=now, queue="mail", priority=-2)
    store.record_progress("worker-1", [(running.id, running.lease_no, "3/10 half")])
    store.request_cancels([running.id], "enough", now=now)
    behind = add_job(store, now=now, queue="mail", waits_for=running.id)
    add_job(store, now=now, queue="mail", waits_for=behind, delay=DAY)
    store.add_jobs([a_job(queue="many", priority=number % 3) for number in range(12)], now=now)
    store.add_jobs([a_job(key="taken", delay=DAY, queue="mail"), a_job(key="now", key_for=HOUR)], now=now)


def _queues_and_locks(store: Store) -> None:
    store.pause_queue("paused", paused=True)
    add_job(store, queue="paused")
    store.pause_queue("empty", paused=True)
    store.change_lock("held", "acquire", "mine", DAY, now=T0)
    store.change_lock("free", "acquire", "mine", MINUTE, now=T0)
    store.change_lock("free", "acquire", "other", MINUTE, now=T0 + HOUR)
    store.change_lock("free", "release", "other", now=T0 + HOUR)
