"""Shows the call of a schedule in its editor: the fields of its task, or JSON if this server does not know the task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rota.app import internals
from rota.web.pages.call_fields import OF, filled, known_task, said, shown_fields
from rota.web.pages.json_text import BadJson, decode_json
from rota.web.pages.run_form import fields_of, read_call
from rota.web.pages.schedule_form import DEFAULTS, FormProblem, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.tasks.task import Task
    from rota.web.pages.page import Visit
    from rota.web.pages.run_form import Fault
    from rota.web.pages.schedule_form import Values

AS_JSON = ("args", "kwargs")


class CallProblem(FormProblem):
    """Arguments that do not fit, each with its fault."""

    def __init__(self, message: str, faults: Mapping[str, Fault | str]) -> None:
        super().__init__("args", message)
        self.faults = faults


def sent_values(visit: Visit, base: Values | None) -> Values:
    """What a form holds, its typed arguments as JSON: a call that nobody touched is the one that is stored."""
    values, task = values_of(visit.form), _sent_task(visit)
    if task is None:
        return values
    stored = base or DEFAULTS
    sent, fields = dict(visit.form), fields_of(task, internals(visit.app).redaction.extra)
    before = _filled(visit, task, stored)
    if before is not None and all(sent.get(field.key, "") == before.get(field.key, "") for field in fields):
        return {**values, **{name: stored[name] for name in AS_JSON}}
    by_name = frozenset(_decoded(stored["kwargs"], dict) or ())
    read = read_call(task, fields, sent, visit.words.zone, by_name=by_name, is_checked=False)
    if read.faults and "preview" not in visit.form:
        name, fault = next(iter(read.faults.items()))
        raise CallProblem(f"{name}: {said(visit, fault)}", read.faults)
    return {**values, "args": _written(read.args), "kwargs": _written(read.kwargs)}


def call_values(visit: Visit, values: Values, problem: FormProblem | None) -> dict[str, Any]:
    """The arguments for the template: typed fields if the task is known and they can hold the call."""
    task = known_task(visit.app, values["task"])
    if task is None or (problem is not None and problem.field in AS_JSON and not isinstance(problem, CallProblem)):
        return {"call_of": "", "fields": None}
    faults = problem.faults if isinstance(problem, CallProblem) else {}
    is_sent = task is _sent_task(visit)
    sent = dict(visit.form) if faults or (is_sent and "preview" in visit.form) else _filled(visit, task, values)
    if sent is None:
        return {"call_of": "", "fields": None}
    return {"call_of": task.name, "fields": shown_fields(visit, task, sent, faults)}


def _sent_task(visit: Visit) -> Task[Any, Any] | None:
    """The task whose typed fields were sent; None if the arguments came as JSON."""
    is_json = any(name in visit.form for name in AS_JSON)
    return None if is_json else known_task(visit.app, visit.form.get(OF))


def _filled(visit: Visit, task: Task[Any, Any], values: Mapping[str, str]) -> dict[str, str] | None:
    args, kwargs = _decoded(values["args"], list), _decoded(values["kwargs"], dict)
    if args is None or kwargs is None:
        return None
    fields = fields_of(task, internals(visit.app).redaction.extra)
    return filled(task, fields, args, kwargs, visit.words.zone)


def _decoded(text: str, kind: type) -> Any:
    try:
        found = decode_json(text or ("[]" if kind is list else "{}"))
    except BadJson:
        return None
    return found if isinstance(found, kind) else None


def _written(value: Any) -> str:
    """As the stored call is written, so that the two can be compared."""
    return json.dumps(value, ensure_ascii=False)
