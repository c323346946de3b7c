"""Defines nodes, as JSON shows them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rota.inspector.facts.values import filled
from rota.model.micros import datetime_of, outside_calendar
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from rota.store.contract import Node


class NodeFacts(Struct, kw_only=True):
    """A process that runs a worker, a scheduler or both."""

    id: str
    state: Literal["alive", "silent"]
    is_draining: bool  # it was asked to stop: it finishes its running jobs, and claims no more
    host: str
    pid: int
    roles: list[str]
    queues: list[str]
    tasks: list[str]
    running: int
    concurrency: int
    app: str
    version: str
    started_at: datetime
    beat_at: datetime
    problem: str | None  # why its record cannot be read, if it cannot


def node_facts(node: Node, now: int) -> NodeFacts:
    """The facts of a node. A silent one runs nothing as far as is known: its jobs are given to others."""
    is_here = is_alive(node, now)
    return filled(
        NodeFacts,
        node,
        state="alive" if is_here else "silent",
        running=node.running if is_here else 0,
        roles=list(node.roles),
        queues=list(node.queues),
        tasks=list(node.tasks),
        started_at=datetime_of(node.started_at),
        beat_at=datetime_of(node.beat_at),
        problem=node_problem(node) or None,
    )


def node_problem(node: Node) -> str:
    return node.problem or outside_calendar(started_at=node.started_at, beat_at=node.beat_at)
