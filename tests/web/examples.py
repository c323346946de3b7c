"""For each route, a request that would be served."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from alerts.stage import raised_alert
from app.steps import work
from rota import every
from rota.app import internals
from rota.documents import DocumentQueue, MemorySource

if TYPE_CHECKING:
    from rota.web.route import Route
    from web.stage import Stage

BODIES: dict[str, Any] = {
    "enqueue_job": {"task": "greet", "args": ["ann"]},
    "create_schedule": {"id": "new", "task": "greet", "args": ["ann"], "trigger": {"cron": "0 9 * * *"}},
    "preview_schedule": {"trigger": {"cron": "30 2 * * *"}, "tz": "America/New_York"},
    "put_schedule": {"task": "greet", "args": ["ann"], "trigger": {"every": "5m"}},
    "patch_schedule": {"trigger": {"every": "10m"}, "description": "slower"},
    "create_tenant": {"name": "new", "tz": "Asia/Kolkata"},
    "put_tenant": {"tz": "Asia/Kolkata"},
    "patch_tenant": {"description": "a customer"},
    "create_token": {"name": "eve", "role": "read", "ttl": "1d"},
    "silence_alerts": {"target": "mail", "until": "2100-01-01T00:00:00Z", "reason": "it moves"},
    "unsilence_alerts": {"target": "mail"},
    "test_alert_channel": {"channel": "pager"},
    "put_alert_rule": {"when": "oldest", "queue": "mail", "after": "5m", "channels": ["pager"]},
}


def example(route: Route, stage: Stage) -> tuple[str, dict[str, Any]]:
    """Its path and what else is sent, with the things there that it speaks of."""
    path = route.path
    if route.name == "unsilence_alerts":
        stage.app.alerts.silence("mail", until=datetime(2100, 1, 1, tzinfo=UTC), by="ann")
    for name, make in THINGS.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", make(route, stage))
    query = QUERIES.get(route.name, "")
    options = {"json": BODIES[route.name]} if route.name in BODIES else {}
    return f"{path}?{query}" if query else path, options


def _job(route: Route, stage: Stage) -> str:
    job = internals(stage.app).registry.get("fail").enqueue()
    if route.name in {"retry_job", "delete_job"}:
        work(stage.app, queues=["mail"])
    return job.id


def _schedule(route: Route, stage: Stage) -> str:
    del route
    stage.app.schedules.put("daily", internals(stage.app).registry.get("tick").job(), every("1d"), by="ann")
    return "daily"


def _tenant(route: Route, stage: Stage) -> str:
    del route
    stage.app.tenants.put("acme", tz="UTC", by="ann")
    return "acme"


def _token(route: Route, stage: Stage) -> str:
    del route
    return stage.app.tokens.create("bob", by="ann").id


def _sync_task(route: Route, stage: Stage) -> str:
    del route
    stage.app.schedules.sync()
    return stage.app.sources.run("store", "orders").id


def _document_queue(route: Route, stage: Stage) -> str:
    del route
    orders = [{"_id": 7, "sleepUntil": datetime(2100, 1, 1, tzinfo=UTC)}]
    return DocumentQueue(MemorySource(orders), print, name="reminders", app=stage.app).name


def _alert(route: Route, stage: Stage) -> str:
    del route
    return raised_alert(stage.app, "mail", "queue-of-mail").id


def _alert_rule(route: Route, stage: Stage) -> str:
    if route.name != "put_alert_rule":
        stage.app.alerts.put("stored", when="fails", by="ann")
    return "stored"


_RANGE = "source=store&start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
QUERIES = {
    "list_sync_tasks": _RANGE,
    "list_sync_tasks_slash": _RANGE,
    "start_sync_task": "source=store&collection=orders",
    "start_sync_task_slash": "source=store&collection=orders",
    "list_occurrences": "start=2026-01-01T00:00:00Z&end=2026-02-01T00:00:00Z",
    "get_document": "id=7",
    "why_document": "id=7",
    "explain_cron": "cron=0+9+*+*+*&tz=Europe/Paris&n=3",
}
THINGS = {
    "job_id": _job,
    "task_id": _sync_task,
    "schedule_id": _schedule,
    "tenant": _tenant,
    "token_id": _token,
    "name": _document_queue,
    "alert_id": _alert,
    "rule": _alert_rule,
    "queue": lambda _route, _stage: "mail",
}
