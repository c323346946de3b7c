"""The contract of a store: verbs that speak of jobs and schedules, never of rows or keys.

A store records; it holds no rule of its own. Lists go in and lists come out, so that one round trip serves a hundred
jobs. Every write states what it expects and reports what it lost. Verbs take `now`: None means the store's own clock,
which alone decides what is due and which lease has run out; tests inject theirs.
"""

from rota.store.contract.moving import LockRecord, Part, QueueRecord, Record, Seal
from rota.store.contract.store import Listener, Store
from rota.store.contract.values import (
    LARGEST_BATCH,
    LARGEST_PAGE,
    MOST_PROMOTED,
    Added,
    AuditFilter,
    Channel,
    Due,
    Exchange,
    Exchanged,
    Extended,
    Features,
    Fired,
    Item,
    JobFilter,
    LogLine,
    Node,
    Page,
    Pruned,
    QueueInfo,
    Refusal,
    Retention,
    ScheduleFilter,
    check_limit,
)

__all__ = [
    "LARGEST_BATCH",
    "LARGEST_PAGE",
    "MOST_PROMOTED",
    "Added",
    "AuditFilter",
    "Channel",
    "Due",
    "Exchange",
    "Exchanged",
    "Extended",
    "Features",
    "Fired",
    "Item",
    "JobFilter",
    "Listener",
    "LockRecord",
    "LogLine",
    "Node",
    "Page",
    "Part",
    "Pruned",
    "QueueInfo",
    "QueueRecord",
    "Record",
    "Refusal",
    "Retention",
    "ScheduleFilter",
    "Seal",
    "Store",
    "check_limit",
]
