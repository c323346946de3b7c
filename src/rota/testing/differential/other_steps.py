"""Makes random operations on queues, nodes, logs, locks and upkeep, and calls that make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.audit_record import AuditRecord
from rota.model.entry import EntryEdit
from rota.store.contract import AuditFilter, JobFilter, LogLine, Node, Retention
from rota.testing.differential.operation import Operation
from rota.testing.differential.walk import HOLDERS, QUEUES, SCHEDULES
from rota.testing.store_suite.builders import DAY, HOUR, LEASE, MINUTE

if TYPE_CHECKING:
    from rota.testing.differential.walk import Walk

AGES = Retention(succeeded_for=HOUR, failed_for=2 * HOUR, cancelled_for=HOUR // 2, nodes_for=HOUR, audit_for=3 * HOUR)
LINES = Retention(occurrences_for=2 * HOUR, most_occurrences=6)
TENANTS = ("acme", "globex", "a:b", "Z")
LOCKS = ("l1", "l2")
TOKENS = ("t1", "t2")


# Queues.


def pause_queue(walk: Walk) -> Operation:
    return Operation("pause_queue", (walk.random.choice((*QUEUES, "new")),), {"paused": walk.chance(0.3)})


def list_queues(walk: Walk) -> Operation:
    return Operation("list_queues", (), {"now": walk.now})


# Nodes.


def record_heartbeat(walk: Walk) -> Operation:
    name = walk.random.choice(HOLDERS)
    node = Node(id=name, host="höst", pid=7, roles=("worker",), queues=QUEUES, running=walk.random.randrange(3))
    return Operation("record_heartbeat", (node,), {"now": walk.now})


def forget_node(walk: Walk) -> Operation:
    return Operation("forget_node", (walk.random.choice((*HOLDERS, "nobody")),))


def list_nodes(walk: Walk) -> Operation:
    del walk
    return Operation("list_nodes")


# Logs.


def write_logs(walk: Walk) -> Operation:
    """Lines of several jobs in one call, some of which are gone."""
    ids = walk.some_ids(3)
    levels = ("info", "error")
    lines = [
        LogLine(job_id=job_id, at=walk.now, level=walk.random.choice(levels), text=f"line ☕ {n}\x1b")
        for n in range(walk.random.randint(1, 3))
        for job_id in ids
    ]
    walk.logged.update(dict.fromkeys(ids))
    return Operation("append_logs", (lines,))


def read_logs(walk: Walk) -> Operation:
    known = list(walk.logged)[-10:]
    window = walk.random.choice(((None, None), (walk.now - MINUTE, None), (walk.now - HOUR, walk.now - MINUTE)))
    return Operation(
        "list_logs",
        (walk.random.choice([*known, "nobody"]),),
        {"behind": walk.random.choice((0, 0, 2)), "start": window[0], "end": window[1], "limit": 200},
    )


# Locks.


def acquire_lock(walk: Walk) -> Operation:
    return _change_lock(walk, "acquire", walk.random.choice((LEASE, HOUR)))


def extend_lock(walk: Walk) -> Operation:
    return _change_lock(walk, "extend", LEASE)


def release_lock(walk: Walk) -> Operation:
    return _change_lock(walk, "release", 0)


def _change_lock(walk: Walk, act: str, ttl: int) -> Operation:
    name, token = walk.random.choice(LOCKS), walk.random.choice(TOKENS)
    return Operation("change_lock", (name, act, token, ttl), {"now": walk.now})


# Entries and audit records.


def edit_entries(walk: Walk) -> Operation:
    """Edits of entries, some of which are stale."""
    edits = [_entry_edit(walk) for _ in range(walk.random.choice((1, 1, 3)))]
    return Operation("edit_entries", (edits,), {"now": walk.now})


def _entry_edit(walk: Walk) -> EntryEdit:
    name = walk.random.choice(TENANTS)
    known = next(iter(walk.reference.get_entries("tenant", [name])), None)
    version = known.version if known and walk.chance(0.8) else walk.random.choice((0, 1))
    audit = AuditRecord(
        id=walk.new_id(), at=walk.now, by="ann", verb="changed", subject=f"tenant:{name}", after='{"a":"☕"}'
    )
    data = None if walk.chance(0.2) else f'"{walk.now} ☕"'
    return EntryEdit(kind="tenant", name=name, expect_version=version, data=data, audit=audit)


def get_entries(walk: Walk) -> Operation:
    return Operation("get_entries", ("tenant", walk.random.sample(TENANTS, 2)))


def list_entries(walk: Walk) -> Operation:
    return Operation("list_entries", (walk.random.choice(("tenant", "token")),), {"limit": walk.random.choice((1, 50))})


def list_audit_records(walk: Walk) -> Operation:
    subject = walk.random.choice((None, "tenant:acme", f"schedule:{walk.random.choice(SCHEDULES)}"))
    since = walk.random.choice((None, walk.now - HOUR))
    return Operation(
        "list_audit_records", (AuditFilter(subject=subject, since=since),), {"limit": walk.random.choice((2, 50))}
    )


# Upkeep. Each call has one limit: with one of age and one of number, a store may choose what it deletes first.


def prune_by_age(walk: Walk) -> Operation:
    return Operation("prune", (AGES, walk.random.choice((1, 7, 500))), {"now": walk.now})


def prune_lines(walk: Walk) -> Operation:
    return Operation("prune", (LINES, 500), {"now": walk.now})


def prune_by_number(walk: Walk) -> Operation | None:
    """Prune by number. The limit is where the order by age is clear, and where no key keeps a job."""
    ended = sorted(
        (job for job in walk.all_jobs() if job.finished_at is not None), key=lambda job: job.finished_at or 0
    )
    cuts = [n for n in range(1, len(ended)) if ended[n - 1].finished_at != ended[n].finished_at]
    if not cuts:
        return None
    cut = walk.random.choice(cuts)
    if any(job.key_until > walk.now for job in ended[:cut]):
        return None
    keep = 400 * DAY
    by_number = Retention(succeeded_for=keep, failed_for=keep, cancelled_for=keep, most_finished=len(ended) - cut)
    return Operation("prune", (by_number, walk.random.choice((1, 500))), {"now": walk.now})


# Calls that make no sense.


def ask_with_a_bad_cursor(walk: Walk) -> Operation:
    """A list with a cursor that no list has returned."""
    options = {"limit": 50, "begin": walk.random.choice(("x", "1; DROP", "-1", "²"))}
    if walk.chance(0.5):
        return Operation("list_jobs", (JobFilter(),), options)
    return Operation("list_occurrences", (walk.random.choice(SCHEDULES), 0, walk.now), options)
