"""The app whose workers have a parent. What its jobs do is written into its folder."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path

from rota import App

app = App("sqlite:///rota.db", name="supervised", lease="10m")  # no test lives long enough to see one run out


def note(name: str) -> None:
    with Path(name).open("a") as file:
        file.write(f"{os.getpid()}\n")


if Path("at-import.py").exists():
    exec(Path("at-import.py").read_text())  # noqa: S102 - what a test wants to go wrong


def is_first(name: str) -> bool:
    """Whether this is the first run of a job, whichever process it is in."""
    note(name)
    return len(Path(name).read_text().splitlines()) == 1


@app.task
def work() -> int:
    note("worked")
    return os.getpid()


@app.task
def gated(gate: str) -> int:
    """Runs until a file is there."""
    note(f"at-{gate}")
    while not Path(gate).exists():
        time.sleep(0.01)
    return os.getpid()


@app.task
def deadly() -> None:
    if is_first("deadly"):
        signal.raise_signal(signal.SIGSEGV)  # to this thread: one sent to the process may come after the job has ended


@app.task
def hog() -> None:
    """Holds the interpreter: no thread of the process gets a turn."""
    if is_first("hog"):
        ctypes.PyDLL(None).sleep(600)


@app.task
def leak(megabytes: int) -> None:
    if is_first("leak"):
        globals()["kept"] = bytearray(b"x" * (megabytes * 1024**2))


@app.task(timeout="1s", retries=0)
def endless() -> None:
    note("endless")
    while True:
        time.sleep(0.05)
