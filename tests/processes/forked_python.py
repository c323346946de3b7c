"""Python processes that start without importing: forks of one that has imported Rota, and has done nothing else.

`ForkedPython(["script.py", "word"], …)` is what `subprocess.Popen([sys.executable, "script.py", "word"], …)` is: a
process of its own that runs the script as its main program and can be watched, signalled and killed. It begins within
some milliseconds of CPU instead of half a second, and tests that kill processes start hundreds. Where the start itself
is what a test is about, it uses Popen.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PRELOADED = [  # what processes of the tests import by and by; none of it begins anything when it is imported
    "argparse", "faulthandler", "psycopg", "psycopg_pool", "pymongo", "redis", "yaml",
    "rota.app", "rota.config", "rota.engine.node", "rota.inspector.reading", "rota.operations.copy", "rota.store.mongo",
    "rota.store.postgres", "rota.store.redis", "rota.store.sqlite", "rota.testing.simulation.history", "rota.wiring",
]  # fmt: skip


class ForkedPython:
    """One process. It writes both outputs into one pipe, as Popen does with stderr=STDOUT."""

    def __init__(self, words: Sequence[str], *, cwd: Path, env: dict[str, str]) -> None:
        reading, writing = os.pipe()
        self._status, status = os.pipe()
        try:
            self.pid = _server().fork({"words": list(words), "cwd": str(cwd), "env": env}, writing, status)
        finally:
            os.close(writing)
            os.close(status)
        self.stdout = os.fdopen(reading, encoding="utf-8", errors="replace")
        self.returncode: int | None = None
        self._lock = Lock()

    def poll(self) -> int | None:
        """The exit code, minus the signal that killed it, or None while it runs."""
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended_within(self, seconds: float | None) -> int | None:
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._lock:  # one thread may wait while another asks
                if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                    said = os.read(self._status, 4)
                    self.returncode = int.from_bytes(said, "little", signed=True) if said else -signal.SIGKILL
                    os.close(self._status)
                if self.returncode is not None:
                    return self.returncode
                status = os.dup(self._status)
            left = None if until is None else until - time.monotonic()
            try:
                if left is not None and left <= 0:
                    return None
                select.select([status], [], [], left)
            finally:
                os.close(status)


class ForkServer:
    """The process that forks, seen from the tests' process."""

    def __init__(self) -> None:
        self._link, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self._lock = Lock()

    def fork(self, request: dict, output: int, status: int) -> int:
        with self._lock:
            message = json.dumps(request).encode()
            socket.send_fds(self._link, [len(message).to_bytes(4, "little")], [output, status])
            self._link.sendall(message)
            answer = self._link.recv(4, socket.MSG_WAITALL)
        assert answer, "the process that forks has ended"
        return int.from_bytes(answer, "little")

    def close(self) -> None:
        """It ends by itself when nobody is there to ask it."""
        self._link.close()
        self._process.wait()


@cache
def _server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.close)
    return server


# In the process that forks.


class Forker:
    """Forks on request, and tells each end of a child to whom it may concern."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._ends: dict[int, int] = {}  # child -> where its exit code goes
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> dict | None:
        """Returns in each child, with what it is to run; in the process that forks when nobody can ask any more."""
        while True:
            ready = select.select([self._link, self._woken], [], [])[0]
            if self._woken in ready:
                with suppress(BlockingIOError):
                    os.read(self._woken, 4096)
                self._reap()
            if self._link in ready:
                head, fds, _flags, _address = socket.recv_fds(self._link, 4, 2)
                if not head:
                    return None
                request = json.loads(self._link.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL))
                if not (pid := os.fork()):
                    self._become_child(*fds)
                    return request
                os.close(fds[0])
                self._ends[pid] = fds[1]
                self._link.sendall(pid.to_bytes(4, "little"))

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                end = self._ends.pop(found[0])
                with suppress(BrokenPipeError):  # nobody wants to know any more
                    os.write(end, os.waitstatus_to_exitcode(found[1]).to_bytes(4, "little", signed=True))
                os.close(end)

    def _become_child(self, output: int, status: int) -> None:
        """Nothing of the process that forks is left: its signals, its links, its other children's ends."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._link.close()
        for number in (self._woken, self._wake, status, *self._ends.values()):
            os.close(number)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)


def run(request: dict) -> None:
    """Be `python WORDS…` in that folder."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    words = request["words"]
    if words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], request["cwd"]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = words, str(Path(words[0]).parent)
        runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    request = Forker(link).serve()
    if request is not None:
        run(request)


if __name__ == "__main__":
    main()
