"""Runs `enqueue`: adds a job from the shell, and with `--wait` waits for its result."""

from __future__ import annotations

import inspect
from decimal import Decimal
from typing import TYPE_CHECKING, Any, get_type_hints

import click
import msgspec
from msgspec import Struct

from rota.app import internals
from rota.cli.job_page import run_words
from rota.cli.options import app_option, check_fine_duration, find_store, open_shared, output_option, store_option
from rota.cli.output import Output, say, warn
from rota.cli.target import check_tasks, load_target
from rota.cli.words import coarse, first_line, instant, span
from rota.errors import BadPayload, JobFailed, JobNotFound
from rota.inspector.calls import call
from rota.inspector.facts.job import enqueued_facts, enqueued_record
from rota.inspector.typed_times import instant_from
from rota.model.jobs.job import State
from rota.model.jobs.payload import unpack_call
from rota.model.micros import SECOND, datetime_of
from rota.model.secrets.redaction import hidden
from rota.store.shared.liveness import is_alive

if TYPE_CHECKING:
    from rota.app import App
    from rota.inspector.facts.job import EnqueuedFacts
    from rota.model.jobs.job import Job as JobRecord
    from rota.store.contract import Store
    from rota.tasks.job import Job
    from rota.tasks.task import Request, Task


class Arguments(Struct, frozen=True):
    """A call's arguments, as they were typed."""

    args: list[Any]
    kwargs: dict[str, Any]


@click.command(
    epilog="An argument is JSON if it can be read as JSON, otherwise text; name=value goes by name. A parameter "
    "annotated `str` or `Decimal` gets the text as typed. Put -- before arguments that begin with a dash."
)
@click.argument("task_name", metavar="TASK")
@click.argument("words", nargs=-1, metavar="[ARG | NAME=VALUE]...")
@click.option("--at", metavar="TIME", help="Not before this time, such as 2026-10-14T09:00Z.")
@click.option("--in", "delay", metavar="DURATION", callback=check_fine_duration, help="Not before this long from now.")
@click.option("--priority", metavar="N", help="From -100 to 100, or low, normal, high; higher first.")
@click.option("--queue", metavar="NAME", help="Another queue than the task's own.")
@click.option("--key", help="At most one waiting or running job has this key.")
@click.option("--wait", is_flag=True, help="Wait for the end; print the result, or exit with 7 if it failed.")
@click.option("--timeout", metavar="DURATION", callback=check_fine_duration, help="Wait no longer; exit with 8.")
@app_option
@store_option
@output_option
def enqueue(target: str | None, store_url: str | None, **options: Any) -> None:
    """Enqueue a job for a task, and print the job's id."""
    app = _load(target, store_url)
    try:
        _enqueue(app, **options)
    finally:
        app.close()


def _enqueue(
    app: App, task_name: str, words: tuple[str, ...], out: Output, *, wait: bool, timeout: str | None, **options: Any
) -> None:
    if timeout and not wait:
        raise click.UsageError("--timeout says how long --wait waits; give both")
    task = internals(app).registry.get(task_name)
    arguments = read_arguments(task, words)
    request = _configured(task, **options).job(*arguments.args, **arguments.kwargs)
    check_types(app, task, request)
    job = internals(app).send([request])[0]
    shown = internals(app).redaction.call(request.payload)
    _say_what_was_sent(job, request, call(task.name, shown.args, shown.kwargs))
    if wait:
        _warn_if_nobody_works(app.open(), request.queue)
        record = _wait(app, job, request, timeout)
        _tell_end(record, enqueued_facts(record, internals(app).redaction, existed=job.existed), out)
    else:
        record = enqueued_record(app.open(), request, job.id)
        out.page(enqueued_facts(record, internals(app).redaction, existed=job.existed), lambda: [job.id])


def read_arguments(task: Task[Any, Any], words: tuple[str, ...]) -> Arguments:
    """The call that the words make."""
    parameters = list(inspect.signature(task.function).parameters)
    texts = _text_parameters(task)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            kwargs[name] = _value(value, is_text=name in texts)
        else:
            position = parameters[len(args)] if len(args) < len(parameters) else ""
            args.append(_value(word, is_text=position in texts))
    return Arguments(args, kwargs)


def check_types(app: App, task: Task[Any, Any], request: Request) -> None:
    """A command line has no type checker, so that plain hints such as `int` count here."""
    texts = internals(app).redaction.texts(request.payload)
    misfits = [
        hidden(misfit, texts) for misfit in task.signature.misfits(unpack_call(request.payload), is_written=True)
    ]
    if misfits:
        raise BadPayload("; ".join(misfits))


def _load(target: str | None, store_url: str | None) -> App:
    if not target:
        raise click.UsageError("the app that has the task is not named: add --app jobs.py, or set ROTA_APP")
    loaded = load_target(target)
    check_tasks(loaded)
    if store_url:
        internals(loaded.app).store.use(find_store(store_url, loaded.app.settings.namespace))
    return open_shared(loaded.app)


def _text_parameters(task: Task[Any, Any]) -> set[str]:
    try:
        hints = get_type_hints(task.function)
    except Exception:  # noqa: BLE001 - a hint that cannot be resolved says nothing
        return set()
    return {name for name, hint in hints.items() if hint in {str, Decimal}}  # a number of JSON may lose digits


def _value(text: str, *, is_text: bool) -> Any:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text if is_text and not isinstance(value, str) else value


def _configured(
    task: Task[Any, Any],
    *,
    at: str | None,
    delay: str | None,
    priority: str | None,
    queue: str | None,
    key: str | None,
) -> Any:
    if at and delay:
        raise click.UsageError("--at and --in both say when; give one of them")
    return task.using(
        at=instant_from(at) if at else None,
        delay=delay,
        priority=int(priority) if priority and priority.lstrip("+-").isdecimal() else priority,
        queue=queue,
        key=key,
    )


def _say_what_was_sent(job: Job[Any], request: Request, words: str) -> None:
    if job.existed:
        say("not sent: another job that has not ended has this key; this is its id")
        return
    at, delay = request.overrides.at, request.overrides.delay
    when = f", not before {instant(datetime_of(at))}" if at else f", due in {_away(delay / SECOND)}" if delay else ""
    say(f"enqueued {words} on queue {request.queue}{when}")


def _away(seconds: float) -> str:
    return coarse(seconds) if seconds >= 1 else span(seconds)


def _wait(app: App, job: Job[Any], request: Request, timeout: str | None) -> JobRecord:
    """The job once it has ended; a job that is not kept may be gone by then."""
    try:
        return app.jobs.wait(job.id, timeout)
    except JobNotFound:
        return enqueued_record(app.open(), request, job.id)


def _warn_if_nobody_works(store: Store, queue: str) -> None:
    now = store.now()
    if not any(queue in node.queues and is_alive(node, now) for node in store.list_nodes()):
        warn(f"no worker takes queue {queue} at the moment; start one with `rota worker`")


def _tell_end(record: JobRecord, facts: EnqueuedFacts, out: Output) -> None:
    """The result on stdout; a job that failed is an error of its own."""
    if words := run_words(record):
        say(f"{record.state} {words}, job {record.id}")
    if out.form != "table" or record.state is State.SUCCEEDED:
        out.page(facts, lambda: [msgspec.json.encode(facts.result).decode()])
    if record.state is not State.SUCCEEDED:
        words = f"job {record.id} {record.state}: {first_line(record.error or record.cancel_reason)}"
        raise JobFailed(f"{words}. `rota jobs show {record.id}` has the details")
