"""Runs a copy of a job with other arguments: in the form of its task, or as JSON if this server does not know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.app import internals
from rota.errors import BadOption, BadPayload
from rota.model.jobs.payload import REDACTED, unpack_call
from rota.operations.run_copy import run_copy
from rota.web.pages.call_fields import filled, known_task, said, shown_fields
from rota.web.pages.json_text import BadJson, decode_json
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.run_form import Fault, field_named, fields_of, read_call
from rota.web.pages.said_words import say_error
from rota.web.pages.views.job import JobPath

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rota.model.jobs.job import Job
    from rota.model.jobs.payload import Call
    from rota.tasks.task import Task

LONGEST_FIELD = 64_000  # characters of arguments that a form shows


def show_copy(visit: Visit) -> View:
    job = visit.app.jobs.read(visit.path["job_id"])
    call = _shown_call(visit, job)
    task = None if visit.query.get("as") == "json" else known_task(visit.app, job.task)
    sent = None if task is None else _filled(visit, task, call)
    if task is None or sent is None:
        return _json_form(visit, job, *_json_texts(call))
    return _typed_form(visit, job, task, sent, {})


def make_copy(visit: Visit) -> View | GoTo:
    """Enqueue a copy with the arguments of the form; what cannot be read is shown again, with the reason."""
    job = visit.app.jobs.read(visit.path["job_id"])
    task = known_task(visit.app, job.task)
    if task is None or "args" in visit.form:
        return _copy_json(visit, job)
    return _copy_typed(visit, job, task)


def _copy_json(visit: Visit, job: Job) -> View | GoTo:
    texts = visit.form.get("args"), visit.form.get("kwargs")
    try:
        args, kwargs = json_arguments(visit, *texts)
        return _copy(visit, job, args, kwargs)
    except (BadOption, BadPayload) as err:
        return _json_form(visit, job, *texts, say_error(visit.words, err))


def _copy_typed(visit: Visit, job: Job, task: Task[Any, Any]) -> View | GoTo:
    fields, sent = fields_of(task, internals(visit.app).redaction.extra), dict(visit.form)
    by_name = frozenset(_shown_call(visit, job).kwargs)
    read = read_call(task, fields, sent, visit.words.zone, by_name=by_name, is_checked=False)
    if read.faults:
        return _typed_form(visit, job, task, sent, read.faults)
    try:
        return _copy(visit, job, read.args, read.kwargs)
    except (BadOption, BadPayload) as err:
        return _typed_form(visit, job, task, sent, {field_named(fields, str(err)): say_error(visit.words, err)})


def _copy(visit: Visit, job: Job, args: list[Any], kwargs: dict[str, Any]) -> GoTo:
    inner, store = internals(visit.app), visit.app.open()
    new_id = inner.new_id()
    copy = run_copy(store, inner.registry, inner.redaction, job, new_id, args=args, kwargs=kwargs, by=visit.by)
    return GoTo(path=f"/jobs/{copy}", flash=Flash(key="copied"))


def json_arguments(visit: Visit, args: str, kwargs: str) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position and by name from two texts; an error names the field and the place in it."""
    return _decoded(visit, "args", args, list), _decoded(visit, "kwargs", kwargs, dict)


def _decoded(visit: Visit, name: str, text: str, kind: type) -> Any:
    words, field = visit.words, str(visit.words.text(f"edit.f_{name}"))
    try:
        value = decode_json(text.strip() or ("[]" if kind is list else "{}"))
    except BadJson as err:
        raise BadOption(str(words.text("copy.bad_json", field=field, line=err.line, column=err.column))) from err
    if not isinstance(value, kind):
        raise BadOption(str(words.text("copy.bad_list" if kind is list else "copy.bad_object", field=field)))
    return value


def _shown_call(visit: Visit, job: Job) -> Call:
    return internals(visit.app).redaction.shown(unpack_call(job.payload))


def _filled(visit: Visit, task: Task[Any, Any], call: Call) -> dict[str, str] | None:
    fields = fields_of(task, internals(visit.app).redaction.extra)
    sent = filled(task, fields, [*call.args], call.kwargs, visit.words.zone)
    is_short = sent is not None and all(len(text) <= LONGEST_FIELD for text in sent.values())
    return sent if is_short else None


def _json_texts(call: Call) -> tuple[str, str]:
    args, kwargs = (msgspec.json.format(msgspec.json.encode(part)).decode() for part in (call.args, call.kwargs))
    return args, kwargs


def _typed_form(
    visit: Visit, job: Job, task: Task[Any, Any], sent: Mapping[str, str], faults: Mapping[str, Fault | str]
) -> View:
    values = {
        "fields": shown_fields(visit, task, sent, faults),
        "problem": said(visit, faults.get("")),
        "is_large": False,
        "is_hidden": False,  # each field says it of itself
        "other": visit.url(f"/jobs/{job.id}/copy", **{"as": "json"}),
    }
    return _view(visit, job, values, is_bad=bool(faults))


def _json_form(visit: Visit, job: Job, args: str, kwargs: str, problem: str = "") -> View:
    is_form = known_task(visit.app, job.task) is not None and _has_form(visit, job)
    values = {
        "fields": None,
        "args": args,
        "kwargs": kwargs,
        "is_large": max(len(args), len(kwargs)) > LONGEST_FIELD,
        "is_hidden": any(REDACTED in text for text in (args, kwargs, *_json_texts(_shown_call(visit, job)))),
        "problem": problem,
        "other": visit.url(f"/jobs/{job.id}/copy") if is_form else "",
    }
    return _view(visit, job, values, is_bad=bool(problem))


def _has_form(visit: Visit, job: Job) -> bool:
    task = known_task(visit.app, job.task)
    return task is not None and _filled(visit, task, _shown_call(visit, job)) is not None


def _view(visit: Visit, job: Job, values: dict[str, Any], *, is_bad: bool) -> View:
    task = known_task(visit.app, job.task)
    signature = "" if task is None else f"{job.task}{task.signature.shape}"
    shown = {"job": {"id": job.id, "task": job.task}, "signature": signature, **values}
    return View(template="copy.html", values=shown, status=422 if is_bad else 200)


_COPY = "/jobs/{job_id}/copy"

PAGES = (
    Page(path=_COPY, role="operate", handle=show_copy, params=JobPath),
    Page(method="POST", path=_COPY, role="operate", handle=make_copy, params=JobPath),
)
