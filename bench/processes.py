"""Rota's own commands as processes, and what the system says of them."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rota.store.contract import Store

PATIENCE = 30.0


def node_in(store: Store) -> int:
    """The process that has signed in."""
    deadline = time.monotonic() + PATIENCE
    store.open()
    try:
        while not (nodes := store.list_nodes()):
            if time.monotonic() > deadline:
                raise TimeoutError("no worker has signed in")
            time.sleep(0.05)
        return nodes[0].pid
    finally:
        store.close()


def cpu_of(processes: Iterable[int]) -> float:
    """Seconds on a core so far, to the nanosecond, of all threads."""
    files = (file for pid in processes for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def wakeups_of(processes: Iterable[int]) -> int:
    """How often a thread went on after it had waited."""
    files = (file for pid in processes for file in Path(f"/proc/{pid}/task").glob("*/status"))
    lines = (line for file in files for line in file.read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


def resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


@contextmanager
def started(folder: str, *words: str) -> Iterator[int]:
    """A command in a folder, stopped at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rota", *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        process.kill()
        process.wait()
