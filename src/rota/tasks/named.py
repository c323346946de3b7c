"""Makes requests for tasks by their names, in a process that does not have their code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.errors import UnknownTask
from rota.model.jobs.payload import Call, pack_call
from rota.model.names import check_name
from rota.tasks.arguments import Signature
from rota.tasks.task import NOTHING_ELSE, Request, TaskOptions

if TYPE_CHECKING:
    from rota.model.jobs.codecs import Codecs
    from rota.tasks.task import Registry

OPTIONS = TaskOptions()


def request_by_name(
    registry: Registry,
    codecs: Codecs,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    redact: tuple[str, ...],
) -> Request:
    """The request for a call of this task. If the app has the task, its signature and its options apply.

    Otherwise nothing is known but the name: the job goes into the queue `default`, and the worker that runs it checks
    the arguments. Arguments are hidden by their names alone.
    """
    named = check_name("task", name)
    task = registry.find(named) or _by_ending(registry, named)
    if task is not None:
        return task.request(args, kwargs, NOTHING_ELSE)
    signature = Signature(_elsewhere, named, codecs)
    call = Call(list(args), kwargs, secrets=signature.secrets(args, kwargs, redact))
    return Request(named, pack_call(call, what=named, encode=signature.encode), OPTIONS)


def _by_ending(registry: Registry, name: str) -> Any:
    """A task whose function has this bare name, as commands and files may call it."""
    endings = [known for known in registry.names() if known.endswith(f".{name}")]
    if len(endings) > 1:
        raise UnknownTask(f"'{name}' may be {' or '.join(endings)}; write the whole name")
    return registry.find(endings[0]) if endings else None


def _elsewhere(*args: Any, **kwargs: Any) -> None:
    """Represents a function that this process does not have."""
