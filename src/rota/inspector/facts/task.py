"""Defines registered tasks and their parameters, as JSON shows them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from rota.inspector.facts.values import duration

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


_PARAMETER = inspect.Parameter
_KINDS: dict[Any, Literal["positional", "either", "rest", "named", "rest_named"]] = {
    _PARAMETER.POSITIONAL_ONLY: "positional",
    _PARAMETER.POSITIONAL_OR_KEYWORD: "either",
    _PARAMETER.VAR_POSITIONAL: "rest",
    _PARAMETER.KEYWORD_ONLY: "named",
    _PARAMETER.VAR_KEYWORD: "rest_named",
}


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
