"""run, worker and scheduler: an app's services in this process, until they are told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli.banner import banner
from rota.cli.log_lines import LEVELS, log_successes, set_up_logging
from rota.cli.options import check_duration, find_store, store_option
from rota.cli.output import say
from rota.cli.stopping import Stopping
from rota.cli.target import Target, check_tasks, load_target

if TYPE_CHECKING:
    from rota.app import App

TARGET_HELP = "TARGET is jobs.py, package.module or module:app; without it, ROTA_APP says which."

target_argument = click.argument("target", required=False, envvar="ROTA_APP")
drain_option = click.option(
    "--drain",
    default="25s",
    metavar="DURATION",
    callback=check_duration,
    help="How long a first SIGTERM or Ctrl-C waits for running jobs.  [default: 25s]",
)
level_option = click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    metavar="LEVEL",
    default="info",
    help="debug, info, warning or error.  [default: info]",
)
queues_option = click.option(
    "-q",
    "--queues",
    multiple=True,
    metavar="NAMES",
    callback=lambda _context, _option, given: _split(given),
    help="Work on these queues only: -q mail,default.  [default: those of the app's tasks]",
)
concurrency_option = click.option(
    "-c", "--concurrency", type=click.IntRange(1, 10_000), metavar="N", default=16, help="Jobs at once.  [default: 16]"
)


@click.command(epilog=TARGET_HELP)
@target_argument
@queues_option
@concurrency_option
@drain_option
@store_option
@level_option
def run(**options: Any) -> None:
    """Work on jobs and fire schedules, in one process."""
    serve(worker=True, scheduler=True, **options)


@click.command(epilog=TARGET_HELP)
@target_argument
@queues_option
@concurrency_option
@click.option("--until-empty", is_flag=True, help="Stop when nothing is ready and nothing runs.")
@drain_option
@store_option
@level_option
def worker(**options: Any) -> None:
    """Work on jobs."""
    serve(worker=True, scheduler=False, **options)


@click.command(epilog=TARGET_HELP)
@target_argument
@drain_option
@store_option
@level_option
def scheduler(**options: Any) -> None:
    """Fire schedules; any number of schedulers may run at once."""
    serve(worker=False, scheduler=True, **options)


def serve(
    target: str | None,
    store_url: str | None,
    drain: str,
    log_level: str,
    *,
    worker: bool,
    scheduler: bool,
    queues: tuple[str, ...] = (),
    concurrency: int = 16,
    until_empty: bool = False,
) -> None:
    """Load the app, say what will run, run it, and end with the code that the reason to stop asks for."""
    loaded = load(target, store_url, needs_tasks=worker)
    app = loaded.app
    set_up_logging(log_level)
    log_successes(app)
    stopping = Stopping()
    try:
        app.open()
        app.sync_schedules()
        taken = (queues or queues_of(app)) if worker else ()
        for line in banner(loaded, taken, concurrency, is_scheduler=scheduler):
            say(line)
        stopping.listen()
        node = app.start(
            worker=worker,
            scheduler=scheduler,
            queues=taken or ("default",),
            concurrency=concurrency,
            drain=drain,
        )
        if until_empty and node.worker is not None:
            stopping.end_when_empty(node.worker)
        code = stopping.wait(app, node)
    finally:
        app.close()
    click.get_current_context().exit(code)


def queues_of(app: App) -> tuple[str, ...]:
    """The queues into which the app's own tasks and schedules put jobs, so that none is left without a worker."""
    tasks = {task.options.queue for task in app.registry}
    schedules = {spec.queue for spec in app.declared.values()}
    return tuple(sorted({"default"} | tasks | schedules))


def load(target: str | None, store_url: str | None, *, needs_tasks: bool) -> Target:
    """The app that a target names, on the store that is wanted."""
    if not target:
        raise click.UsageError("no TARGET is given and ROTA_APP is not set, so there is no app to run")
    loaded = load_target(target)
    if needs_tasks:
        check_tasks(loaded)
    if store_url:
        loaded.app.use_store(find_store(store_url, loaded.app.namespace))
    return loaded


def _split(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for names in given for name in names.split(",") if name.strip()))
