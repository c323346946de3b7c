"""For each route, a request that would be served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.steps import work

if TYPE_CHECKING:
    from rota.web.route import Route
    from web.stage import Stage

BODIES: dict[str, Any] = {
    "enqueue_job": {"task": "greet", "args": ["ann"]},
}


def example(route: Route, stage: Stage) -> tuple[str, dict[str, Any]]:
    """Its path and what else is sent, with the things there that it speaks of."""
    path = route.path
    for name, make in THINGS.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", make(route, stage))
    query = QUERIES.get(route.name, "")
    options = {"json": BODIES[route.name]} if route.name in BODIES else {}
    return f"{path}?{query}" if query else path, options


def _job(route: Route, stage: Stage) -> str:
    job = stage.app.registry.get("fail").enqueue()
    if route.name in {"retry_job", "delete_job"}:
        work(stage.app, queues=["mail"])
    return job.id


QUERIES: dict[str, str] = {}
THINGS = {"job_id": _job}
