"""Turns `run` and `worker` into a small parent process that starts the same command again as its workers."""

from __future__ import annotations

import os
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.cli.options import check_duration
from rota.cli.parent_connection import ParentConnection
from rota.cli.store_wait import seconds_of
from rota.config.loader import resolve
from rota.errors import BadOption, StoreError
from rota.model.micros import SECOND, span_of
from rota.model.sizes import bytes_of
from rota.supervisor.plan import START_FOR, Plan, become_parent

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.app import App

MOST_PROCESSES = 256
LEAST_STUCK = 3 * SECOND

processes_option = click.option(
    "--processes",
    type=click.IntRange(0, MOST_PROCESSES),
    metavar="N",
    help="Worker processes under a parent, which replaces those that fail; 0: one process without a parent.  "
    "[setting: worker.processes; default: 1]",
)


def _check_stuck(context: click.Context, option: click.Parameter, text: str) -> str:
    check_duration(context, option, text)
    if span_of(text) < LEAST_STUCK:
        raise BadOption(f"--stuck-after {text} is too short: a worker sends a heartbeat every second; at least 3s")
    return text


stuck_option = click.option(
    "--stuck-after",
    default="30s",
    metavar="DURATION",
    callback=_check_stuck,
    help="Replace a worker process that sends no heartbeat for this long.  [default: 30s]",
)
memory_option = click.option(
    "--max-memory",
    metavar="SIZE",
    callback=lambda _context, _option, size: None if size is None else bytes_of(size),
    help="Replace a worker process that uses more, such as 512M; it drains first.  [setting: worker.recycle_memory]",
)


def supervised(command: Callable[..., None]) -> Callable[..., None]:
    """Run a command that serves under a parent. The command gets its connection to the parent, or None."""

    @processes_option
    @stuck_option
    @memory_option
    @wraps(command)
    def start(*, processes: int | None, stuck_after: str, max_memory: int | None, **options: Any) -> None:
        parent = ParentConnection.taken()
        said = resolve(Path.cwd()).settings
        wanted = said.worker.processes if processes is None else processes
        if parent is None and wanted:
            become_parent(
                Plan(
                    command=[sys.executable, *sys.orig_argv[1:]],
                    folder=_folder(),
                    processes=wanted,
                    start_for=START_FOR + seconds_of(options["wait_for"]),
                    stuck_after=span_of(stuck_after) / SECOND,
                    most_memory=said.worker.recycle_memory if max_memory is None else max_memory,
                    is_until_empty=options.get("until_empty", False),
                    log_level=options["log_level"] or said.log.level or "info",
                    log_format=options["log_format"] or said.log.format,
                )
            )
        command(parent=parent, **options)

    return start


def check_shared(app: App, parent: ParentConnection | None) -> None:
    """Refuse a store that each of several processes would have for itself."""
    if parent is None or parent.processes == 1 or app.open().features.is_shared:
        return
    raise StoreError(
        f"a {app.open().describe()} lives and ends with one process, and {parent.processes} are to share it; give "
        "the app a store that processes share, such as sqlite:///jobs.db, or leave --processes out"
    )


def _folder() -> str:
    """This folder by the name under which it was entered: after a deploy, that may be another one."""
    named = os.environ.get("PWD", "")
    try:
        return named if named and os.path.samefile(named, ".") else os.getcwd()  # noqa: PTH109, PTH121
    except OSError:
        return os.getcwd()  # noqa: PTH109
