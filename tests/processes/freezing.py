"""Processes that are stopped by SIGSTOP while they hold no lock."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from typing import TYPE_CHECKING

from rota.testing.servers.process import is_stopped

if TYPE_CHECKING:
    from pathlib import Path

HANG_LIMIT = 120.0  # seconds


def freeze(pid: int, file: Path | None = None) -> None:
    """Stop a process outside of a transaction on a SQLite file: inside one, it would keep all others from writing."""
    deadline = time.monotonic() + HANG_LIMIT
    while time.monotonic() < deadline:
        os.kill(pid, signal.SIGSTOP)
        while not is_stopped(pid):
            assert time.monotonic() < deadline, f"process {pid} does not stop"
            os.sched_yield()
        if file is None or not is_locked(file):
            return
        os.kill(pid, signal.SIGCONT)
    raise AssertionError(f"{file} was locked whenever process {pid} was stopped")


def is_locked(file: Path) -> bool:
    """Whether some process is inside a transaction that writes."""
    connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False
