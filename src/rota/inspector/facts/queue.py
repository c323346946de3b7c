"""Defines queues, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from rota.model.audit_record import subject_of
from rota.model.jobs.job import State
from rota.model.micros import datetime_of, optional_datetime
from rota.store.contract import AuditFilter
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.audit_record import AuditRecord
    from rota.store.contract import Node, QueueInfo, Store

LAST_CHANGES = 10  # audit records of a queue that are searched for its last pause or resumption


class QueuePauseFacts(Struct, kw_only=True):
    """The pause of a queue by its audit record: the author, the time and the reason."""

    at: datetime
    by: str
    reason: str


class QueueFacts(Struct, kw_only=True):
    """A queue in numbers."""

    name: str
    state: Literal["open", "paused"]
    counts: dict[str, int]  # stored jobs, by state
    totals: dict[str, int]  # jobs that ever ended, by state
    oldest_at: datetime | None  # since when the first job in the queue has been waiting
    pause: QueuePauseFacts | None  # None: it is open, or the audit record was pruned
    workers: int  # live ones that serve it …
    slots: int  # … and how many jobs, of all their queues, they run at once


def queues_facts(store: Store, queues: Sequence[QueueInfo]) -> list[QueueFacts]:
    """Queues with their workers and their pauses: one more read for each that is paused."""
    nodes = live_nodes(store.list_nodes(), store.now())
    return [_queue_facts(store, queue, [node for node in nodes if queue.name in node.queues]) for queue in queues]


def _queue_facts(store: Store, queue: QueueInfo, workers: Sequence[Node]) -> QueueFacts:
    return QueueFacts(
        name=queue.name,
        state="paused" if queue.is_paused else "open",
        counts=jobs_by_state([queue]),
        totals=ended_by_state([queue]),
        oldest_at=optional_datetime(queue.oldest_at),
        pause=pause_of(store, queue),
        workers=len(workers),
        slots=sum(node.concurrency for node in workers),
    )


def last_audit_record(store: Store, queue: str, verb: str) -> AuditRecord | None:
    """The newest audit record of a queue with this verb."""
    found = store.list_audit_records(AuditFilter(subject=subject_of("queue", queue)), limit=LAST_CHANGES).items
    return next((record for record in found if record.verb == verb), None)


def pause_of(store: Store, queue: QueueInfo) -> QueuePauseFacts | None:
    last = last_audit_record(store, queue.name, "paused") if queue.is_paused else None
    if last is None:
        return None
    try:
        reason = str(msgspec.json.decode(last.after or "{}", type=dict[str, object]).get("reason", ""))
    except msgspec.MsgspecError:  # another version, or a person, may have written it
        reason = ""
    return QueuePauseFacts(at=datetime_of(last.at), by=last.by, reason=reason)


def jobs_by_state(queues: Iterable[QueueInfo]) -> dict[str, int]:
    """The jobs of all queues that are kept, by state; a state without jobs is 0."""
    found = list(queues)
    return {state.value: sum(queue.counts.get(state.value, 0) for queue in found) for state in State}


def ended_by_state(queues: Iterable[QueueInfo]) -> dict[str, int]:
    """The jobs of all queues that ever ended, by state; pruned and deleted ones count."""
    found = list(queues)
    final = [state.value for state in State if state.is_final]
    return {state: sum(queue.totals.get(state, 0) for queue in found) for state in final}
