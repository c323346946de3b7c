"""Runs `run`, `worker` and `scheduler`: the services of an app in this process, until a signal stops them.

The first two become a parent process; its workers come back here, with a connection to it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.app import internals
from rota.cli import early
from rota.cli.banner import banner
from rota.cli.log_lines import LEVELS, log_successes, set_up_logging
from rota.cli.observing import Address, observed, open_port, own_address
from rota.cli.options import check_duration, known_target, store_option
from rota.cli.output import say
from rota.cli.stopping import Stopping
from rota.cli.store_wait import wait_option, when_reached
from rota.cli.supervising import check_shared, supervised
from rota.cli.target import Target, check_tasks, load_target, target_from
from rota.errors import BadSettings
from rota.store.urls import absolute

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App
    from rota.cli.parent_connection import ParentConnection
    from rota.engine.node import Node

TARGET_HELP = "TARGET is jobs.py, package.module or module:app; without it, ROTA_APP or rota.yaml says which."

_APP = "rota.cli.run.app"  # where --app is kept while the command line is read


def _note_app(context: click.Context, _option: click.Parameter, given: str | None) -> None:
    context.meta[_APP] = given


def _one_target(context: click.Context, argument: click.Parameter, given: str | None) -> str | None:
    """The target, named first or by --app, as the other commands have it."""
    named = context.meta.get(_APP)
    if given and named and given != named:
        raise click.UsageError(f"two apps are named, {given} and --app {named}; leave one of them out")
    return known_target(context, argument, given or named)


def target_argument(function: Callable[..., None]) -> Callable[..., None]:
    """TARGET, or --app TARGET."""
    named = click.option(
        "--app", metavar="TARGET", is_eager=True, expose_value=False, callback=_note_app, help="The same as TARGET."
    )
    return click.argument("target", required=False, callback=_one_target)(named(function))


drain_option = click.option(
    "--drain",
    metavar="DURATION",
    callback=check_duration,
    help="How long a first SIGTERM or Ctrl-C waits for running jobs.  [setting: drain; default: 25s]",
)
level_option = click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    metavar="LEVEL",
    help="debug, info, warning or error.  [setting: log.level; default: info]",
)
queues_option = click.option(
    "-q",
    "--queues",
    multiple=True,
    metavar="NAMES",
    callback=lambda _context, _option, given: _split(given),
    help="Work on these queues only: -q mail,default.  [setting: worker.queues; default: those of the app's tasks]",
)
concurrency_option = click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="How many jobs run at once.  [setting: worker.concurrency; default: 16]",
)


documents_option = click.option(
    "--documents/--no-documents",
    default=True,
    help="Also run the queues of documents that rota.yaml and the app declare.  [default: yes]",
)


@click.command(epilog=TARGET_HELP)
@target_argument
@queues_option
@concurrency_option
@documents_option
@drain_option
@store_option
@wait_option
@level_option
@observed
@supervised
def run(**options: Any) -> None:
    """Run jobs and fire schedules."""
    serve(worker=True, scheduler=True, **options)


@click.command(epilog=TARGET_HELP)
@target_argument
@queues_option
@concurrency_option
@click.option("--until-empty", is_flag=True, help="Stop when nothing is ready and nothing runs.")
@drain_option
@store_option
@wait_option
@level_option
@observed
@supervised
def worker(**options: Any) -> None:
    """Work on jobs."""
    serve(worker=True, scheduler=False, **options)


@click.command(epilog=TARGET_HELP)
@target_argument
@drain_option
@store_option
@wait_option
@level_option
@observed
def scheduler(**options: Any) -> None:
    """Fire schedules; any number of schedulers may run at once."""
    serve(worker=False, scheduler=True, **options)


def serve(
    target: str | None,
    store_url: str | None,
    drain: str | None,
    log_level: str | None,
    log_format: str | None,
    wait_for: str | None,
    metrics_at: Address | None,
    *,
    worker: bool,
    scheduler: bool,
    queues: tuple[str, ...] = (),
    concurrency: int | None = None,
    until_empty: bool = False,
    documents: bool = False,
    parent: ParentConnection | None = None,
) -> None:
    """Load the app, say what will run, run it, and end with the code that the reason to stop asks for."""
    early.heed()
    loaded = load(target, store_url, needs_tasks=worker, documents=documents)
    app = loaded.app
    form = log_format or app.settings.log.format
    set_up_logging(log_level or app.settings.log.level or "info", form)
    log_successes(app, form)
    at = own_address(metrics_at, parent)
    try:
        when_reached(app.open, wait_for)
        check_shared(app, parent)
        app.schedules.sync()
        taken = (queues or app.settings.worker.queues or queues_of(app)) if worker else ()
        at_once = concurrency or app.settings.worker.concurrency
        if form == "text" and (parent is None or parent.shows_banner):
            say(*banner(loaded, taken, at_once, is_scheduler=scheduler, has_documents=documents))
        start = partial(
            app.start,
            worker=worker,
            scheduler=scheduler,
            queues=taken or ("default",),
            concurrency=at_once,
            drain=drain,
            documents=documents,
        )
        code = _run_node(app, start, at, parent, until_empty=until_empty)
    finally:
        app.close()
    click.get_current_context().exit(code)


def _run_node(
    app: App,
    start: Callable[[], Node],
    metrics_at: Address | None,
    parent: ParentConnection | None,
    *,
    until_empty: bool,
) -> int:
    """Start a node, with its metrics and the tie to its supervisor, and wait until it has stopped; the exit code."""
    stopping, port = Stopping(), None
    if metrics_at is not None:
        app.metrics.text()  # it counts from here on, and knows which schedules come first
    stopping.listen()
    if parent is not None:
        app.on("node.starting", parent.introduce)
    try:
        node = start()
        if metrics_at is not None:
            port = open_port(app, node, metrics_at)
            stopping.on_replaced = port.close
        if parent is not None:
            parent.hold(node, stopping)
        if until_empty and node.worker is not None:
            stopping.end_when_empty(node.worker)
        return stopping.wait(app, node)
    finally:
        if port is not None:
            port.close()


def queues_of(app: App) -> tuple[str, ...]:
    """The queues into which the app's own tasks and schedules put jobs, so that none is left without a worker."""
    tasks = {task.options.queue for task in internals(app).registry}
    schedules = {spec.queue for _, specs in internals(app).deploy.parts() for spec in specs.values()}
    tenants = {str(queue) for tenant in internals(app).deploy.tenants if (queue := tenant.options.get("queue"))}
    return tuple(sorted({"default"} | tasks | schedules | tenants))


def load(target: str | None, store_url: str | None, *, needs_tasks: bool, documents: bool = False) -> Target:
    """The app that a target names, on the store that is wanted."""
    if not target:
        raise click.UsageError(
            "no TARGET is given and ROTA_APP is not set, nor is `app` in a rota.yaml, so there is no app to run"
        )
    loaded = load_target(target)
    if needs_tasks:
        check_tasks(loaded, documents=documents)
    _check_file(loaded.app, target)
    if store_url:
        internals(loaded.app).store.use(absolute(store_url, Path.cwd()))
    return loaded


def _check_file(app: App, target: str) -> None:
    """Refuse schedules of rota.yaml whose task the app does not have, unless the file names another app as its own."""
    unknown_tasks = internals(app).deploy.unknown_tasks.values()
    if unknown_tasks and target_from(internals(app).resolved) in {None, target}:
        raise BadSettings(*unknown_tasks)


def _split(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for names in given for name in names.split(",") if name.strip()))
