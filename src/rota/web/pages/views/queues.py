"""Shows the queues: the waiting and running jobs of each, its workers, and who paused it and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.inspector.facts.queue import QueueFacts, queues_facts
from rota.inspector.silent_jobs import jobs_of_silent_nodes
from rota.model.micros import datetime_of
from rota.model.names import check_name
from rota.store.contract import QueueInfo
from rota.store.shared.liveness import live_nodes
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.types import Name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rota.store.contract import Store

MOST_SHOWN = 500
LONGEST_REASON = 1_000


class QueuePath(Struct, frozen=True):
    """Which queue."""

    queue: Name


def show_queues(visit: Visit) -> View:
    store = visit.app.open()
    now = store.now()
    silent = Counter(job.queue for job in jobs_of_silent_nodes(store, store.list_nodes(), now))
    search = visit.query.get("q", "").strip()[:255]
    facts = [queue for queue in _all_queues(store) if search.lower() in queue.name.lower()]
    return View(template="queues.html", values=queues_values(facts, search, datetime_of(now), silent))


def _all_queues(store: Store) -> list[QueueFacts]:
    """Queues that a job has been in, and those that only wait for their first one."""
    known = store.list_queues()
    names = {queue.name for queue in known}
    served = {name for node in live_nodes(store.list_nodes(), store.now()) for name in node.queues}
    return queues_facts(store, [*known, *(QueueInfo(name=name) for name in sorted(served - names))])


def queues_values(queues: list[QueueFacts], search: str, now: datetime, silent: Mapping[str, int]) -> dict[str, Any]:
    rows = sorted(
        (row(queue, now, silent.get(queue.name, 0)) for queue in queues), key=lambda one: (-one["trouble"], one["name"])
    )
    return {
        "search": search,
        "rows": rows[:MOST_SHOWN],
        "total": len(rows),
        "paused": sum(one["state"] == "paused" for one in rows),
        "unserved": sum(one["is_unserved"] for one in rows),
        "idle": sum(not one["workers"] for one in rows),
    }


def row(queue: QueueFacts, now: datetime, silent: int = 0) -> dict[str, Any]:
    is_unserved = not queue.workers and queue.counts["queued"] > 0
    return {
        "name": queue.name,
        "state": queue.state,
        "pause": queue.pause,
        "is_unserved": is_unserved,
        "trouble": 2 * is_unserved + (queue.state == "paused"),
        "waiting": queue.counts["queued"],
        "scheduled": queue.counts["scheduled"] + queue.counts["held"],
        "running": queue.counts["running"],
        "silent": silent,
        "failed": queue.counts["failed"],
        "oldest": None if queue.oldest_at is None else max(0.0, (now - queue.oldest_at).total_seconds()),
        "workers": queue.workers,
        "slots": queue.slots,
    }


def pause_queue(visit: Visit) -> GoTo:
    name = check_name("queue", visit.path["queue"])
    visit.app.queues.pause(name, reason=visit.form.get("reason").strip()[:LONGEST_REASON], by=visit.by)
    return GoTo(path="/queues", flash=Flash(key="queues.paused", values={"name": name}))


def resume_queue(visit: Visit) -> GoTo:
    name = check_name("queue", visit.path["queue"])
    visit.app.queues.resume(name, by=visit.by)
    return GoTo(path="/queues", flash=Flash(key="queues.resumed", values={"name": name}))


PAGES = (
    Page(path="/queues", role="read", handle=show_queues),
    Page(method="POST", path="/queues/{queue}/pause", role="operate", params=QueuePath, handle=pause_queue),
    Page(method="POST", path="/queues/{queue}/resume", role="operate", params=QueuePath, handle=resume_queue),
)
