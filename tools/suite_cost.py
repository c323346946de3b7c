"""Runs the tests and prints the CPU time that they take: all of it, and for the most expensive files and tests.

    python -m tools.suite_cost [pytest's arguments]

The tool becomes the parent of processes that tests leave behind, so that their time is counted too. `pytest -p
tools.suite_cost` writes, for each test process, what each test took: its own time, that of its children, and that of
the servers that it keeps running. What this measuring takes itself, about a minute for all tests, is left out.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

BUDGET = 20 * 60  # seconds of CPU; `make help` states it
SHOWN = 40  # rows of a table
FOLDER = "ROTA_SUITE_COST"  # the folder for the figures of each test process
PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")


class Spent:
    """CPU seconds of this process and all its descendants, ended or running, without those that asking takes."""

    def __init__(self) -> None:
        self.asking = 0.0
        self._last = self.now()

    def since_last(self) -> float:
        """Seconds since this was last asked. A server that ended unseen may take some with it."""
        now = self.now()
        spent, self._last = now - self._last, now
        return max(spent, 0.0)

    def now(self) -> float:
        began = time.process_time()
        total = self._total() - self.asking
        self.asking += time.process_time() - began
        return total

    def _total(self) -> float:
        children: dict[int, list[int]] = {}
        seconds: dict[int, float] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                with suppress(OSError, ValueError):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    pid, parent = int(folder.name), int(fields[1])
                    children.setdefault(parent, []).append(pid)
                    seconds[pid] = sum(map(int, fields[11:15])) / TICKS
        waiting, total = [os.getpid()], 0.0
        while waiting:
            pid = waiting.pop()
            total += seconds.get(pid, 0.0)
            waiting += children.get(pid, [])
        return total


class PerTest:
    """A pytest plugin that writes down what each test takes in this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spent = Spent()
        self._figures: list[tuple[str, float, float]] = []  # the test, seconds of CPU, seconds by the clock
        self._began = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        now = time.monotonic()
        self._figures.append((nodeid, self._spent.since_last(), now - self._began))
        self._began = now

    def pytest_unconfigure(self) -> None:
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps([self._spent.asking, self._figures]))


def pytest_configure(config: pytest.Config) -> None:
    """Measure in the processes that run tests, and not in the one that only hands them out."""
    folder = os.environ.get(FOLDER)
    is_controller = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
    if folder and not is_controller:
        config.pluginmanager.register(PerTest(Path(folder)))


def main(arguments: list[str]) -> int:
    """Run pytest, wait for all that it leaves behind, and print the figures."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rota-suite-cost-") as folder:
        command = [sys.executable, "-m", "pytest", "-p", "tools.suite_cost", *arguments]
        tests = subprocess.Popen(command, env={**os.environ, FOLDER: folder})  # noqa: S603 - its own
        code = reap(tests.pid)
        report(Path(folder), time.monotonic() - began)
    return code


def reap(tests: int) -> int:
    """Wait for the tests, and meanwhile for whatever they leave behind; returns the exit code of the tests."""
    while True:
        process, status = os.wait()
        if process == tests:
            break
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    return os.waitstatus_to_exitcode(status)


def report(folder: Path, wall: float) -> None:
    written = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    figures = [figure for _, own in written for figure in own]
    print_table("file", ((name.partition("::")[0], cpu, waited) for name, cpu, waited in figures))
    print_table("test", ((name, cpu, waited) for name, cpu, waited in figures))
    times = os.times()
    total = times.children_user + times.children_system - sum(asking for asking, _ in written)
    print(f"\n{total / 60:.1f} minutes of CPU in {wall / 60:.1f} minutes; the budget is {BUDGET / 60:.0f}")  # noqa: T201


def print_table(title: str, figures: Iterable[tuple[str, float, float]]) -> None:
    cpu: dict[str, float] = defaultdict(float)
    waited: dict[str, float] = defaultdict(float)
    for name, seconds, wall in figures:
        cpu[name] += seconds
        waited[name] += wall
    print(f"\n{'CPU s':>8} {'wall s':>8}  {title}")  # noqa: T201 - what it is for
    for name in sorted(cpu, key=cpu.__getitem__, reverse=True)[:SHOWN]:
        print(f"{cpu[name]:8.1f} {waited[name]:8.1f}  {name}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
