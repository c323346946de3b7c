"""Holds what a parent process keeps running, and its limits, as the command line passes them."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NamedTuple, NoReturn

PLAN = "_ROTA_PLAN"  # the environment carries the plan to the parent, …
CONNECTION = "_ROTA_CONNECTION"  # … and to a worker what it needs to know of its connection to the parent
START_FOR = 300.0  # seconds within which a worker must be up; imports may take long
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Plan(NamedTuple):
    """How workers are started, how many, and when one is replaced."""

    command: list[str]
    folder: str
    processes: int = 1
    stuck_after: float = 30.0  # seconds without a heartbeat
    most_memory: int | None = None  # bytes
    is_until_empty: bool = False
    log_level: str = "info"
    log_format: str = "text"
    start_for: float = START_FOR  # seconds until a worker is up


def become_parent(plan: Plan) -> NoReturn:
    """Replace this process, which has the whole library loaded, by the parent; the pid stays the same."""
    sys.stdout.flush()
    sys.stderr.flush()
    folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is large
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)  # a signal that comes before the parent handles it must wait
    command = [
        sys.executable,
        "-I",
        "-S",
        folder,
        *sys.orig_argv[1:],
    ]  # the arguments are for people who list processes
    os.execve(sys.executable, command, {**os.environ, PLAN: json.dumps(plan)})  # noqa: S606 - our own code


def taken_plan() -> Plan:
    """The plan; taken out of the environment, so that no child inherits it."""
    return Plan(*json.loads(os.environ.pop(PLAN)))
