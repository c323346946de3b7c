"""Builds the alert services of a node. If its app declares no rules, they wait for one that the store keeps."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rota.alerts.heartbeats import NodeHeartbeat, Pinger, ScheduleHeartbeats, host_slug
from rota.alerts.sender import Sender
from rota.alerts.watch import AlertWatch

if TYPE_CHECKING:
    from rota.alerts.plan import AlertDeclarations, AlertPlan
    from rota.engine.node import Node
    from rota.store.contract import Store

log = logging.getLogger("rota.alerts")


def watch_for_stored_rules(plan: AlertPlan, node: Node, store: Store, *, app: str) -> AlertWatch:
    """The watch of an app whose first rule was stored while its node runs: too late to refuse the start."""
    for problem in plan.missing():
        log.warning("%s", problem)
    return AlertWatch(store, node.events, node.clock, plan, Sender(plan), app=app, node=node.id)


def add_alert_services(plan: AlertPlan, declared: AlertDeclarations, node: Node, store: Store, *, app: str) -> None:
    """Add the services for the app's declarations to a node that has not started yet."""
    if plan.is_empty:
        return
    plan.check()
    sender = Sender(plan)
    if plan.rules:
        node.add(AlertWatch(store, node.events, node.clock, plan, sender, app=app, node=node.id))
    pinger = Pinger(plan, sender.client)
    if plan.heartbeats and not declared.has_heartbeat_handlers:
        declared.has_heartbeat_handlers = True  # they stay: the app's events outlive this node
        ScheduleHeartbeats(plan, node.events, pinger)
    url = plan.settings.alerting.node_heartbeat
    if url is not None:
        named = plan.url(url).replace("{host}", host_slug())
        node.add(NodeHeartbeat(node.events, node.clock, named, pinger, lambda: node.is_well))
