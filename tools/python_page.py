"""The page about Python: every public name with its signature and its docstring."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import rota
from rota import documents, testing
from rota.client.alerts import Alerts
from rota.client.jobs import HistoryLine, Jobs, LogEntry
from rota.client.locks import Lock
from rota.client.queues import Queues, QueueView
from rota.client.schedules import Schedules
from rota.client.sources import Sources
from rota.client.tenants import Tenants
from rota.client.tokens import Tokens
from rota.engine.executors.run import CurrentJob
from rota.errors import RotaError
from rota.inspector.changes import Change
from rota.inspector.facts.alert import (
    AlertFacts,
    AlertRuleFacts,
    AlertRulesFacts,
    ChannelFacts,
    DeliveryFacts,
    SilenceFacts,
)
from rota.inspector.facts.schedule import OccurrenceFacts
from rota.inspector.facts.why import JobWhyFacts, WhyFacts
from rota.inspector.schedule_view import ScheduleView
from rota.inspector.sync_task import SyncTask
from rota.inspector.tenant_view import TenantView
from rota.inspector.token_view import TokenView
from rota.model.alerts.rule import AlertKeywords, make_rule
from rota.operations.specs import ScheduleKeywords, make_spec
from rota.store.contract import Page
from rota.tasks.task import Configured, TaskKeywords, make_options
from tools.markdown import document, table
from tools.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDEST = 100
_ATTRIBUTE = re.compile(r"^        self\.([a-z]\w*)(?:: [^=]+)? = .*?(?:  # (.+))?$", re.MULTILINE)
_FIELD = re.compile(r"^    ([a-z]\w*): [^=#\n]+?(?:= [^#\n]*?)?(?:  # (.+))?$", re.MULTILINE)
_QUOTED = re.compile(r"'([^'\"]*)'")
HEAD = """\
# Python

Everything that you can import from `rota`, and the objects that it returns. Durations are text such as `"90s"` or
`"1h30m"`, or a `timedelta`; datetimes have a timezone. Errors have [a page of their own](errors.md), and so have
[events](events.md).
"""
PARTS: dict[str, tuple[Any, str]] = {  # what is reached through another name, and how
    "Page": (Page, ""),
    "app.jobs": (Jobs, "Jobs that exist."),
    "JobWhyFacts": (JobWhyFacts, ""),
    "HistoryLine": (HistoryLine, ""),
    "LogEntry": (LogEntry, ""),
    "app.schedules": (Schedules, "Recurring work, made and changed at run time."),
    "ScheduleView": (ScheduleView, ""),
    "WhyFacts": (WhyFacts, ""),
    "OccurrenceFacts": (OccurrenceFacts, ""),
    "Change": (Change, ""),
    "app.tenants": (Tenants, "Customers or projects with a timezone and defaults that schedules follow."),
    "TenantView": (TenantView, ""),
    "app.sources": (Sources, "Collections that are kept in sync."),
    "SyncTask": (SyncTask, ""),
    "app.queues": (Queues, "The queues that jobs wait in."),
    "QueueView": (QueueView, ""),
    "app.alerts": (
        Alerts,
        "Rules that watch schedules, queues and nodes, and the channels to notify. [The guide](../guides/alerts.md).",
    ),
    "AlertRulesFacts": (AlertRulesFacts, ""),
    "AlertRuleFacts": (AlertRuleFacts, ""),
    "ChannelFacts": (ChannelFacts, ""),
    "AlertFacts": (AlertFacts, ""),
    "DeliveryFacts": (DeliveryFacts, ""),
    "SilenceFacts": (SilenceFacts, ""),
    "app.tokens": (Tokens, "The tokens that give access to the HTTP API."),
    "TokenView": (TokenView, ""),
    "Lock": (Lock, ""),
    "Configured": (Configured, ""),
    "current_job": (CurrentJob, ""),
}
FIRST = ("App", "Task", "Job")
MADE_BY_USERS = {
    "App",
    "DocumentQueue",
    "Fields",
    "MemorySource",
    "MongoSource",
    "Retry",
    "Snooze",
    "Cancel",
    "Kit",
    "ManualClock",
}


class Raw:
    """An annotation as it is written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def python_page() -> str:
    names = [name for name in rota.__all__ if name not in FIRST and not _is_error(getattr(rota, name))]
    parts = [HEAD.strip()]
    for name in FIRST:
        parts += thing(name, getattr(rota, name))
    parts += keywords("Options of a task", "`@app.task(…)` takes these.", TaskKeywords, make_options)
    about = "`@app.schedule(…)` and `app.schedules.put(…)` take these."
    parts += keywords("Options of a schedule", about, ScheduleKeywords, make_spec)
    about = "`app.alerts.add(…)` and `app.alerts.put(…)` take these."
    parts += keywords("Options of an alert rule", about, AlertKeywords, make_rule)
    for name, (kind, about) in PARTS.items():
        parts += thing(name, kind, about=about)
    for name in names:
        if name not in PARTS:
            parts += thing(name, getattr(rota, name))
    parts += ["## rota.documents", "How to use it: [the guide](../guides/documents.md)."]
    for name in ("DocumentQueue", "Fields", "MemorySource", "MongoSource"):
        parts += thing(f"rota.documents.{name}", getattr(documents, name))
    parts += ["## rota.testing", "How to use it: [the guide](../guides/testing.md)."]
    for name in testing.__all__:
        parts += thing(f"rota.testing.{name}", getattr(testing, name))
    return "\n\n".join(part for part in parts if part)


def thing(name: str, found: Any, *, about: str = "") -> Iterator[str]:
    """A class with its methods, or a function."""
    yield f"## {name}"
    if not inspect.isclass(found):
        yield fenced(name, found)
        yield document(found)
        yield explained(name, found)
        return
    if found.__name__ in MADE_BY_USERS:
        yield fenced(found.__name__, found).replace(") -> None", ")")
    yield about or document(found)
    if found.__name__ in MADE_BY_USERS:
        yield explained(found.__name__, found)
    yield "\n".join(attributes(found))
    for method, function in methods(found):
        yield f"### {name}.{method}"
        yield fenced(method, function)
        yield document(function)
        yield explained(f"{name}.{method}", function)


def explained(path: str, found: Any) -> str:
    """The parameters that the docstring does not explain."""
    rows = [[f"`{name}`", meaning or ""] for name, meaning in parameters(path, found)]
    return table(["parameter", "meaning"], rows) if rows else ""


def keywords(title: str, about: str, kind: Any, taker: Any) -> Iterator[str]:
    """What a TypedDict lists, with the defaults of the function that takes it."""
    yield f"## {title}"
    yield about
    defaults = inspect.signature(taker).parameters
    meanings = dict(_FIELD.findall(_source(kind)))
    rows = [
        [f"`{name}`", meanings[name], f"`{_text(hint)}`", _default(defaults[name])]
        for name, hint in kind.__annotations__.items()
    ]
    yield table(["option", "meaning", "type", "default"], rows)


def attributes(kind: type) -> Iterator[str]:
    """The fields of a tuple, what the constructor sets, and properties."""
    reasons = dict(_FIELD.findall(_source(kind))) if hasattr(kind, "__struct_fields__") else {}
    for name in getattr(kind, "_fields", getattr(kind, "__struct_fields__", ())):
        words = f". {reasons[name][:1].upper()}{reasons[name][1:]}." if reasons.get(name) else ""
        yield f"- `{name}`: `{_text(kind.__annotations__[name])}`{words}"
    for name, words in _ATTRIBUTE.findall(_constructor(kind)):
        yield f"- `{name}`" + (f": {words}" if words else "")
    for owner in reversed(kind.__mro__):
        for name, member in vars(owner).items():
            if isinstance(member, property) and not name.startswith("_"):
                hint = _text((member.fget.__annotations__ if member.fget else {}).get("return", ""))
                words = " ".join(document(member).split())
                yield f"- `{name}`: `{hint}`. {words}".rstrip(" .") + "."


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except OSError:
        return ""


def _constructor(kind: type) -> str:
    """The source of its own __init__, where somebody wrote one."""
    try:
        return inspect.getsource(vars(kind)["__init__"])
    except (KeyError, OSError):
        return ""


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    seen: dict[str, Any] = {}
    for owner in reversed(kind.__mro__):
        if owner.__module__.startswith("rota"):
            seen |= {name: getattr(kind, name) for name, member in vars(owner).items() if _is_method(name, member)}
    yield from seen.items()


def fenced(name: str, found: Any) -> str:
    try:
        signature = written(inspect.signature(found))
    except (TypeError, ValueError):
        return ""
    quoted = _QUOTED.sub(r'"\1"', signature)
    return f"```py\n{name}{quoted}\n```"


def written(signature: inspect.Signature) -> str:
    """On one line, or a parameter per line where that is too long."""
    parameters = [
        parameter.replace(annotation=_raw(parameter.annotation), default=_shown_default(parameter.default))
        for name, parameter in signature.parameters.items()
        if name != "self" and parameter.annotation != "Never"  # the latter refuses what is no option
    ]
    plain = signature.replace(parameters=parameters, return_annotation=_raw(signature.return_annotation))
    if len(str(plain)) <= WIDEST:
        return str(plain)
    inside, _, returned = str(plain).rpartition(" -> ") if signature.return_annotation else (str(plain), "", "")
    lines = "".join(f"    {text},\n" for text in _split(plain))
    return f"(\n{lines})" + (f" -> {returned}" if inside and returned else "")


def _split(signature: inspect.Signature) -> Iterator[str]:
    star = False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        star = star or parameter.kind is inspect.Parameter.VAR_POSITIONAL
        yield str(parameter)


def _shown_default(value: Any) -> Any:
    """A default that has no text of its own is an ellipsis: its address differs in every run."""
    return Raw("…") if " object at 0x" in repr(value) else value


def _raw(annotation: Any) -> Any:
    return Raw(annotation) if isinstance(annotation, str) else annotation


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    if isinstance(value, tuple):
        value = Raw(f"({', '.join(kind.__name__ for kind in value)})")
    return f"`{value!r}`".replace("'", '"')


def _text(annotation: Any) -> str:
    return str(getattr(annotation, "__forward_arg__", annotation))


def _is_method(name: str, member: Any) -> bool:
    return not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, (staticmethod, classmethod)))


def _is_error(found: Any) -> bool:
    return inspect.isclass(found) and issubclass(found, RotaError)
