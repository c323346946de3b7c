"""Runs `dev`: like `run`, with a live line per job, and with reloads when a file changes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.app import internals
from rota.cli import early
from rota.cli.banner import banner
from rota.cli.endings import INTERRUPTED, report_error
from rota.cli.live_lines import LiveLines
from rota.cli.log_lines import LEVELS, set_up_logging
from rota.cli.options import store_option
from rota.cli.output import heading, say
from rota.cli.reloading import Code, folder_of, start_again, was_reloaded
from rota.cli.run import (
    TARGET_HELP,
    concurrency_option,
    documents_option,
    drain_option,
    load,
    queues_of,
    queues_option,
    target_argument,
)
from rota.cli.watching import CHANGED, Watching
from rota.cli.web import Beside, port_option
from rota.cli.words import count, listed
from rota.config.finding import find_file
from rota.config.loader import resolve
from rota.errors import BadSettings, RotaError

if TYPE_CHECKING:
    from rota.cli.target import Target


@click.command(epilog=TARGET_HELP)
@target_argument
@queues_option
@concurrency_option
@documents_option
@drain_option
@port_option
@store_option
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    metavar="LEVEL",
    help="The log level beside the live lines: debug, info, warning or error.  [setting: log.level; default: warning]",
)
def dev(target: str | None, store_url: str | None, **options: Any) -> None:
    """Run an app while you write it; reloads when it changes."""
    early.heed()
    sys.dont_write_bytecode = True  # a change of the same length within a second would be taken for what was compiled
    typed_in = Path.cwd()
    is_again = was_reloaded()
    code = Code(folder_of(target or ""), find_file(typed_in, os.environ))
    try:
        loaded = _prepare(target, store_url, documents=options["documents"])
    except RotaError as err:
        if not is_again:
            raise
        report_error(err)
        say(f"waiting for a change in {code.folder}")
        _wait_for_change(code, typed_in)
        start_again(typed_in)
    reason = _serve(loaded, code, typed_in, is_again=is_again, **options)
    if reason == CHANGED:
        start_again(typed_in)
    click.get_current_context().exit(INTERRUPTED if reason == signal.SIGINT else 0)


def _prepare(target: str | None, store_url: str | None, *, documents: bool) -> Target:
    """The app, with its store open and its schedules there."""
    loaded = load(target, store_url, needs_tasks=True, documents=documents)
    try:
        loaded.app.schedules.sync()
    except BaseException:
        loaded.app.close()
        raise
    return loaded


def _serve(
    loaded: Target,
    code: Code,
    typed_in: Path,
    *,
    is_again: bool,
    queues: tuple[str, ...],
    concurrency: int | None,
    documents: bool,
    drain: str | None,
    port: int | None,
    log_level: str | None,
) -> int:
    """Run the services; return why they ended."""
    app = loaded.app
    set_up_logging(log_level or app.settings.log.level or "warning")
    lines, watching, http = LiveLines(app, shows_tracebacks=True), Watching(), None
    try:
        internals(app).develop(is_dev=True)
        app.open()
        http = Beside(app, port)
        taken = queues or app.settings.worker.queues or queues_of(app)
        at_once = concurrency or app.settings.worker.concurrency
        if not is_again:
            say(*banner(loaded, taken, at_once, is_scheduler=True, has_documents=documents), *http.greeting())
        watching.listen()
        lines.start()
        node = app.start(queues=taken, concurrency=at_once, drain=drain, documents=documents)
        say(_reloaded(loaded) if is_again else f"\nready; reloads when rota.yaml or a .py in {code.folder} changes\n")
        look = partial(_end_at_change, watching, code, typed_in)
        threading.Thread(target=look, name="rota-reload", daemon=True).start()
        reason = watching.watch(app, node)
        if reason == CHANGED:
            http.hand_on()
        return reason
    finally:
        lines.stop()
        if http is not None:
            http.stop()
        app.close()


def _reloaded(loaded: Target) -> str:
    tasks, schedules = (
        count(len(internals(loaded.app).registry), "task"),
        count(len(internals(loaded.app).deploy.names), "schedule"),
    )
    return f"{heading(f'reloaded {loaded.name}')}: {tasks}, {schedules}"


def _end_at_change(watching: Watching, code: Code, typed_in: Path) -> None:
    _wait_for_change(code, typed_in)
    watching.end(CHANGED)


def _wait_for_change(code: Code, typed_in: Path) -> None:
    """Block until something has changed. Settings that cannot be read change nothing: a fresh process would end."""
    while True:
        _say_changed(code.wait())
        try:
            resolve(typed_in)
        except BadSettings as err:
            report_error(err)
        else:
            return


def _say_changed(changed: list[str]) -> None:
    names = [*changed[:3], "others"] if len(changed) > 3 else changed
    say(f"{listed(names)} changed")
