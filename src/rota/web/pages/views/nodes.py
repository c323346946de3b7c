"""Shows the nodes: the live processes, what each serves and runs, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.app import internals
from rota.inspector.calls import call
from rota.inspector.facts.job import job_facts
from rota.inspector.facts.node import NodeFacts, node_facts
from rota.model.jobs.job import State
from rota.model.micros import datetime_of
from rota.store.contract import LARGEST_PAGE, JobFilter
from rota.web.pages.page import Page, View, Visit

if TYPE_CHECKING:
    from datetime import datetime

    from rota.inspector.facts.job import JobFacts

MOST_SHOWN = 200
MOST_JOBS = 5  # running jobs that one node's row names
LONGEST_CALL = 100


def show_nodes(visit: Visit) -> View:
    store = visit.app.open()
    now, redaction = store.now(), internals(visit.app).redaction
    nodes = [node_facts(node, now) for node in store.list_nodes()]
    running = store.list_jobs(JobFilter(states=(State.RUNNING,)), limit=LARGEST_PAGE).items
    jobs = [job_facts(job, redaction) for job in running]
    return View(template="nodes.html", values=nodes_values(nodes, jobs, datetime_of(now)))


def nodes_values(nodes: list[NodeFacts], jobs: list[JobFacts], now: datetime) -> dict[str, Any]:
    """Those that are gone come first: something may have to be started again."""
    held: dict[str, list[JobFacts]] = {}
    for job in jobs:
        held.setdefault(job.worker or "", []).append(job)
    ordered = sorted(nodes, key=lambda node: (node.state == "alive", node.host, node.pid, node.id))
    alive = [node for node in nodes if node.state == "alive"]
    names = {node.id for node in alive}
    return {
        "rows": [row(node, held.get(node.id, []), now) for node in ordered[:MOST_SHOWN]],
        "total": len(nodes),
        "alive": len(alive),
        "silent": len(nodes) - len(alive),
        "running": sum(len(held.get(name, ())) for name in names),
        "silent_running": sum(len(found) for name, found in held.items() if name not in names),
        "slots": sum(node.concurrency for node in alive),
        "has_worker": any("worker" in node.roles for node in alive),
        "has_scheduler": any("scheduler" in node.roles for node in alive),
    }


def row(node: NodeFacts, jobs: list[JobFacts], now: datetime) -> dict[str, Any]:
    shown = [(job.id, _short(call(job.task, job.args, job.kwargs))) for job in jobs[:MOST_JOBS]]
    return {
        "node": node,
        "silent_for": max(0.0, (now - node.beat_at).total_seconds()),
        "up_for": max(0.0, (now - node.started_at).total_seconds()),
        "running": len(jobs),
        "jobs": shown,
        "more": max(0, len(jobs) - MOST_JOBS),
    }


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CALL else f"{text[:LONGEST_CALL]}…"


PAGES = (Page(path="/nodes", role="read", handle=show_nodes),)
