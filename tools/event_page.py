"""The page about events: each name, what it means, and the fields that the code which emits it gives."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import rota
from rota.engine import events
from rota.engine.events import NAMES, Event
from rota.model.jobs.job import State
from tools.markdown import sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterator

MEANINGS = {
    "job.enqueued": "the store accepted a job that this app sent",
    "job.started": "an attempt begins",
    "job.succeeded": "a job ended well",
    "job.failed": "a job failed for good: no retry is left, or none would help",
    "job.cancelled": "a job was cancelled, by hand or by its task",
    "job.retried": "an attempt failed; the job runs again at `run_at`",
    "job.snoozed": "a task asked to run again later; no retry is spent",
    "job.returned": "a worker returned a job: at shutdown, or because its task is unknown here",
    "job.refused": "a worker's report came too late: another one owns the job",
    "job.lost": "this worker's lease of a job was lost; its report will be refused",
    "job.rescued": "a job's lease expired; the job is queued again, or kept as failed",
    "schedule.fired": "an occurrence made a job",
    "schedule.skipped": "occurrences made none; the ledger says why",
    "schedule.refused": "a firing was refused: another node fired it or a caller edited it first, or the store failed",
    "schedule.broken": "a schedule's rule cannot be evaluated; it does not fire until it is corrected",
    "store.unavailable": "the store does not answer; the service tries again",
    "store.back": "it answers again",
    "store.clock_set": "the store's clock was set, by 2 s or more: it would have shown `was` at the time of the event",
    "store.clock_repaired": "schedules and jobs that were ahead of the store's clock were moved back",
    "service.failed": "a service had an error and continues",
    "node.started": "a node runs",
    "node.stopped": "a node has ended",
    "pruned": "upkeep deleted records whose retention is over",
}
HEAD = """\
# Events

`app.on("job.failed", handler)` calls a handler with each such event, `app.on("job.*", handler)` with all that match. It
is called in the thread in which the event happened, so return quickly. If a handler fails, Rota logs it and continues.
"""


def event_page() -> str:
    fields = fields_of_events()
    rows = [
        [f"`{name}`", meaning_of(name), ", ".join(f"`{field}`" for field in fields[name])] for name in sorted(NAMES)
    ]
    event = f"`Event(name, at, data)`: {sentence(Event).lower().partition(': ')[2]} The fields below are in `data`."
    return "\n\n".join([HEAD.strip(), event, table(["event", "when", "fields"], rows)])


def meaning_of(name: str) -> str:
    """As this page says it, or as the comment beside the name does."""
    beside = dict(re.findall(r'"([a-z._]+)",  # (.+)', inspect.getsource(events)))
    found = MEANINGS.get(name) or beside.get(name)
    if found is None:
        raise LookupError(f"nothing says what the event {name!r} means; add a comment beside it in engine/events.py")
    return found


def fields_of_events() -> dict[str, list[str]]:
    """Read from the calls that emit them."""
    fields: dict[str, list[str]] = defaultdict(list)
    for path in sorted(Path(rota.__file__).parent.rglob("*.py")):
        if "testing" not in path.parts:
            for name, found in _emitted(ast.parse(path.read_text(encoding="utf-8"))):
                fields[name] += [field for field in found if field not in fields[name]]
    return fields


def _emitted(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and _is_emit(node)]
    plain = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant) and not _is_own(call)}
    functions = [getattr(events, name) for name in _called(module) if inspect.isfunction(getattr(events, name, None))]
    sources = [module, *(ast.parse(inspect.getsource(function)) for function in functions)]
    said = set().union(*(_names_in(node) for source in sources for node in ast.walk(source)))
    for call in calls:
        found = [field for keyword in call.keywords for field in _fields_in(keyword)]
        if isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), found
        else:  # a name that is worked out: one that the module says elsewhere, or a function of events that it calls
            yield from ((name, found) for name in said - plain)


def _called(module: ast.Module) -> set[str]:
    """The names of the functions that a module calls."""
    calls = (node.func for node in ast.walk(module) if isinstance(node, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _fields_in(keyword: ast.keyword) -> list[str]:
    """The field of a keyword; those of `**about_change(…)`, as that function of the events' module returns them."""
    if keyword.arg:
        return [keyword.arg]
    call = keyword.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return []
    function = ast.parse(inspect.getsource(getattr(events, call.func.id)))
    returned = next(node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    return (
        [str(key.value) for key in returned.keys if isinstance(key, ast.Constant)]
        if isinstance(returned, ast.Dict)
        else []
    )


def _names_in(node: ast.AST) -> set[str]:
    """The names that a text in the code stands for: itself, or f"job.{state}" for each state."""
    if isinstance(node, ast.Constant):
        return {str(node.value)} & NAMES
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        return {f"{node.values[0].value!s}{state}" for state in State} & NAMES
    return set()


def _is_emit(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"emit", "_emit"} and len(call.args) >= 2


def _is_own(call: ast.Call) -> bool:
    """Whether it calls a method of its class, which adds the fields that all events of the class have."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "_emit"
