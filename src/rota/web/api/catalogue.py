"""Lists the tasks that the app has registered, and explains cron expressions, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rota.app import internals
from rota.clock import utc_now
from rota.errors import BadTrigger, UnknownZone
from rota.inspector.facts.cron import CronFacts, cron_facts
from rota.inspector.facts.task import TaskFacts, task_facts
from rota.triggers import cron
from rota.web.refusals import at_fault
from rota.web.route import Ask, Route
from rota.web.types import Query, Zone


class TasksFacts(Struct, kw_only=True):
    """All tasks, by name."""

    items: list[TaskFacts]


class CronQuery(Query, frozen=True, kw_only=True):
    """A cron expression, and how many of its runs."""

    cron: Annotated[str, Meta(min_length=1, max_length=256)]
    tz: Zone | None = None
    dialect: Literal["unix", "quartz"] | None = None
    n: Annotated[int, Meta(ge=1, le=200)] = 10


def list_tasks(ask: Ask) -> TasksFacts:
    registry, redact = internals(ask.app).registry, internals(ask.app).redaction.extra
    return TasksFacts(items=[task_facts(registry.get(name), redact) for name in registry.names()])


def explain_cron(ask: Ask) -> CronFacts:
    query: CronQuery = ask.query
    with at_fault("cron", BadTrigger), at_fault("tz", UnknownZone):
        trigger = _of(query)
    return cron_facts(trigger, query.n, utc_now())


def _of(query: CronQuery) -> Any:
    return cron(query.cron, tz=query.tz, dialect=query.dialect)


ROUTES = (
    Route(method="GET", path="/api/v1/tasks", role="read", handle=list_tasks, answer=TasksFacts,
          says="The tasks that can be enqueued here, with their parameters."),
    Route(method="GET", path="/api/v1/next", role="read", handle=explain_cron, query=CronQuery, answer=CronFacts,
          says="What a cron expression means, its next runs, and what to beware of."),
)  # fmt: skip
