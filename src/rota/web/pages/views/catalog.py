"""Shows the tasks that can be enqueued here, and a form that runs one, made from its type hints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rota.app import internals
from rota.errors import RotaError, UnknownTask
from rota.inspector.facts.job import job_facts
from rota.inspector.facts.task import TaskFacts, task_facts
from rota.inspector.log_tail import log_tail
from rota.model.micros import datetime_of
from rota.sentences import sentence_of
from rota.store.contract import JobFilter
from rota.store.shared.liveness import live_nodes
from rota.web.pages.call_fields import said, shown_fields
from rota.web.pages.page import Flash, GoTo, Page, View, Visit
from rota.web.pages.run_form import Fault, fields_of, local_instant, read_call
from rota.web.pages.said_words import say_error
from rota.web.pages.views.job import log_values
from rota.web.pages.views.jobs import row
from rota.web.refusals import Refusal
from rota.web.types import Name

if TYPE_CHECKING:
    from rota.inspector.facts.task import ParameterFacts
    from rota.tasks.task import Task
    from rota.web.pages.run_form import Read

MOST_SHOWN = 500
LAST_JOBS, LAST_LINES = 5, 20
OPTIONS = ("delay", "at", "priority", "key")


class TaskPath(Struct, frozen=True):
    """Which task."""

    task: Name


def show_catalog(visit: Visit) -> View:
    registry, redact = internals(visit.app).registry, internals(visit.app).redaction.extra
    search = visit.query.get("q", "").strip()[:255]
    tasks = [task_facts(registry.get(name), redact) for name in sorted(registry.names())]
    return View(template="catalog.html", values=catalog_values(tasks, _known(visit), search))


def _known(visit: Visit) -> Counter[str]:
    """How many live workers know each task."""
    store = visit.app.open()
    return Counter(name for node in live_nodes(store.list_nodes(), store.now()) for name in node.tasks)


def catalog_values(tasks: list[TaskFacts], known: Counter[str], search: str) -> dict[str, Any]:
    wanted = search.lower()
    rows = [_row(task, known) for task in tasks if wanted in task.name.lower()]
    own = {task.name for task in tasks}
    elsewhere = sorted(name for name in known if name not in own and wanted in name.lower())
    return {
        "search": search,
        "rows": rows[:MOST_SHOWN],
        "total": len(tasks),
        "found": len(rows),
        "elsewhere": elsewhere[:MOST_SHOWN],
        "has_workers": bool(known),
    }


def _row(task: TaskFacts, known: Counter[str]) -> dict[str, Any]:
    return {"task": task, "signature": signature_text(task.parameters), "workers": known.get(task.name, 0)}


def signature_text(parameters: list[ParameterFacts]) -> str:
    """The parameters as Python writes them; defaults may be secret, so that they are an ellipsis."""
    words: list[str] = []
    is_named = False
    for one in parameters:
        if one.kind == "named" and not is_named:
            words.append("*")
            is_named = True
        is_named = is_named or one.kind == "rest"
        head = {"rest": "*", "rest_named": "**"}.get(one.kind, "")
        default = "" if one.required or head else " = …" if one.type else "=…"
        words.append(f"{head}{one.name}{f': {one.type}' if one.type else ''}{default}")
    return f"({', '.join(words)})"


def show_task(visit: Visit) -> View:
    return _task_view(visit, _task(visit), {}, None)


def run_task(visit: Visit) -> View | GoTo:
    """Enqueue what the form says; what does not fit is said at its field, and nothing is lost."""
    task = _task(visit)
    sent = dict(visit.form)
    read = read_call(task, fields_of(task, internals(visit.app).redaction.extra), sent, visit.words.zone)
    options = _options(visit, task, sent, read.faults)
    if read.faults:
        return _task_view(visit, task, sent, read)
    try:
        job = task.using(**options).enqueue(*read.args, **read.kwargs)
    except RotaError as err:
        read.faults[""] = say_error(visit.words, err)
        return _task_view(visit, task, sent, read)
    if job.existed:
        return GoTo(path=f"/jobs/{job.id}", flash=Flash(key="catalog.existed", tone="warn"))
    visit.app.jobs.note(job.id, "enqueued", visit.by, {}, {"task": task.name})
    return GoTo(path=f"/jobs/{job.id}", flash=Flash(key="catalog.enqueued", values={"task": task.name}))


def _options(
    visit: Visit, task: Task[Any, Any], sent: dict[str, str], faults: dict[str, Fault | str]
) -> dict[str, Any]:
    """When it runs, before which others, and under which key; each is checked by itself, to know whose fault it is."""
    options: dict[str, Any] = {}
    for name in OPTIONS:
        text = sent.get(name, "").strip()
        if not text:
            continue
        try:
            options[name] = local_instant(text, visit.words.zone) if name == "at" else _number_or_text(name, text)
            task.using(**{name: options[name]})
        except Fault as fault:
            faults[f"option.{name}"] = fault
        except RotaError as err:
            faults[f"option.{name}"] = say_error(visit.words, err)
    if "at" in options and "delay" in options:
        faults["option.at"] = Fault("catalog.at_or_delay")
    return options


def _number_or_text(name: str, text: str) -> int | str:
    is_number = name == "priority" and text.isascii() and text.lstrip("+-").isdecimal() and len(text) < 10
    return int(text) if is_number else text


def _task(visit: Visit) -> Task[Any, Any]:
    try:
        return internals(visit.app).registry.get(visit.path["task"])
    except UnknownTask as err:
        raise Refusal(404, "not_found", sentence_of(err)) from err


def last_jobs(visit: Visit, name: str) -> dict[str, Any]:
    """The newest jobs of a task, and the end of the log of the newest that has begun."""
    store, redaction = visit.app.open(), internals(visit.app).redaction
    jobs = store.list_jobs(JobFilter(task=name), limit=LAST_JOBS).items
    begun = next((job for job in jobs if job.started_at is not None), None)
    tail = log_values(log_tail(store, begun.id, LAST_LINES)) if begun else {"lines": [], "has_more": False}
    now = datetime_of(store.now())
    return {
        "jobs": [row(job_facts(job, redaction), now) for job in jobs],
        "logged": begun.id if begun else None,
        "lines": tail["lines"],
        "has_more": tail["has_more"],
    }


def _task_view(visit: Visit, task: Task[Any, Any], sent: dict[str, str], read: Read | None) -> View:
    redact = internals(visit.app).redaction.extra
    facts, known = task_facts(task, redact), _known(visit)
    faults = read.faults if read else {}
    values = {
        "task": facts,
        "signature": signature_text(facts.parameters),
        "workers": known.get(facts.name, 0),
        "fields": shown_fields(visit, task, sent, faults),
        "sent": {name: sent.get(name, "") for name in OPTIONS},
        "option_faults": {name: said(visit, faults.get(f"option.{name}")) for name in OPTIONS},
        "problem": said(visit, faults.get("")),
        "is_open": bool(read),
        **last_jobs(visit, facts.name),
    }
    return View(template="task.html", values=values, status=422 if faults else 200)


PAGES = (
    Page(path="/catalog", role="read", handle=show_catalog),
    Page(path="/catalog/{task}", role="read", params=TaskPath, handle=show_task),
    Page(method="POST", path="/catalog/{task}", role="operate", params=TaskPath, handle=run_task),
)
