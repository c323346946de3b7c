"""The tasks that the app has registered, and what a cron expression means, over HTTP."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from rota.clock import utc_now
from rota.errors import BadTrigger, UnknownZone
from rota.triggers import cron
from rota.web.refusals import at_fault
from rota.web.route import Ask, Route
from rota.web.schedule_body import duration
from rota.web.types import Query, Zone

if TYPE_CHECKING:
    from rota.tasks.task import Task


class ParameterFacts(Struct, kw_only=True):
    """One parameter of a task's function."""

    name: str
    kind: Literal["positional", "either", "rest", "named", "rest_named"]
    type: str | None  # its hint, as Python writes it
    required: bool
    secret: bool  # its value is shown as "[redacted]"


class TaskFacts(Struct, kw_only=True):
    """A task that can be enqueued here."""

    name: str
    description: str
    parameters: list[ParameterFacts]
    queue: str
    priority: int
    retries: int
    timeout: str | None
    unique: bool
    executor: Literal["thread", "process", "loop"]


class TasksFacts(Struct, kw_only=True):
    """All tasks, by name."""

    items: list[TaskFacts]


class CronQuery(Query, frozen=True, kw_only=True):
    """A cron expression, and how many of its runs."""

    cron: Annotated[str, Meta(min_length=1, max_length=256)]
    tz: Zone | None = None
    dialect: Literal["unix", "quartz"] | None = None
    n: Annotated[int, Meta(ge=1, le=200)] = 10


class RunFacts(Struct, kw_only=True):
    """One run: the instant, and the wall time that it has in the rule's zone."""

    utc: datetime
    local: str


class CaveatFacts(Struct, kw_only=True):
    """Something that may surprise."""

    kind: str
    message: str
    at: datetime | None


class CronFacts(Struct, kw_only=True):
    """What an expression means."""

    trigger: str
    sentence: str
    tz: str
    runs: list[RunFacts]
    warnings: list[CaveatFacts]


_PARAMETER = inspect.Parameter
_KINDS: dict[Any, Literal["positional", "either", "rest", "named", "rest_named"]] = {
    _PARAMETER.POSITIONAL_ONLY: "positional",
    _PARAMETER.POSITIONAL_OR_KEYWORD: "either",
    _PARAMETER.VAR_POSITIONAL: "rest",
    _PARAMETER.KEYWORD_ONLY: "named",
    _PARAMETER.VAR_KEYWORD: "rest_named",
}


def list_tasks(ask: Ask) -> TasksFacts:
    registry, redact = ask.app.registry, ask.app.redaction.extra
    return TasksFacts(items=[task_facts(registry.get(name), redact) for name in registry.names()])


def explain_cron(ask: Ask) -> CronFacts:
    query: CronQuery = ask.query
    with at_fault("cron", BadTrigger), at_fault("tz", UnknownZone):
        trigger = _of(query)
    now = utc_now()
    runs = trigger.next_runs(query.n, after=now)
    return CronFacts(
        trigger=str(trigger),
        sentence=trigger.explain(),
        tz=trigger.tz or "UTC",
        runs=[RunFacts(utc=run.astimezone(UTC), local=run.isoformat()) for run in runs],
        warnings=[
            CaveatFacts(kind=caveat.kind, message=caveat.message, at=caveat.at)
            for caveat in trigger.warnings(after=now)
        ],
    )


def task_facts(task: Task[Any, Any], redact: tuple[str, ...]) -> TaskFacts:
    options = task.options
    signature = task.signature
    return TaskFacts(
        name=task.name,
        description=options.description,
        parameters=[
            _parameter(one, is_secret=signature.is_secret(name, redact))
            for name, one in signature.readable.parameters.items()
        ],
        queue=options.queue,
        priority=options.priority,
        retries=options.retry.retries,
        timeout=duration(options.timeout or 0),
        unique=options.unique,
        executor="loop" if task.is_async else options.executor,
    )


def _of(query: CronQuery) -> Any:
    return cron(query.cron, tz=query.tz, dialect=query.dialect)


def _parameter(parameter: inspect.Parameter, *, is_secret: bool) -> ParameterFacts:
    hint = parameter.annotation
    variadic = parameter.kind in {_PARAMETER.VAR_POSITIONAL, _PARAMETER.VAR_KEYWORD}
    return ParameterFacts(
        name=parameter.name,
        kind=_KINDS[parameter.kind],
        type=None if hint is _PARAMETER.empty else hint if isinstance(hint, str) else inspect.formatannotation(hint),
        required=parameter.default is _PARAMETER.empty and not variadic,
        secret=is_secret,
    )


ROUTES = (
    Route(method="GET", path="/api/v1/tasks", role="read", handle=list_tasks, answer=TasksFacts,
          says="The tasks that can be enqueued here, with their parameters."),
    Route(method="GET", path="/api/v1/next", role="read", handle=explain_cron, query=CronQuery, answer=CronFacts,
          says="What a cron expression means, its next runs, and what to beware of."),
)  # fmt: skip
