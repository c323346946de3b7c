"""Runs a server as a child process: starts it on a free port, waits for it, stops, kills and restarts it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

START_WITHIN = 60.0  # a loaded machine, a cold disk
STOP_WITHIN = 30.0


class ServerFailed(Exception):
    """A server did not start. The error contains its output."""


class Server(ABC):
    """One server with a folder of its own, which is deleted when it is closed."""

    name: str

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"rota-{self.name}-", dir=folder))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs it in the foreground."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers; False or any OSError means not yet."""

    @abstractmethod
    def url(self) -> str:
        """Its address as a store's URL."""

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Make what the first start needs."""

    def start(self) -> Self:
        """Start it, or start it again on the same port and data, and wait until it answers."""
        if self._process is None and not (self.folder / "output.log").exists():
            self.prepare()
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - a command of our own
                self.command(), stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=self.folder
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()  # nothing else would end it
            raise
        return self

    def stop(self) -> None:
        """Stop it normally."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Freeze it: it keeps its connections and does not answer."""
        self._signal(signal.SIGSTOP)
        while self._process is not None and not is_stopped(self._process.pid):
            time.sleep(0.001)  # its threads stop one by one

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """End it and delete its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def output(self) -> str:
        """The end of its output."""
        with contextlib.suppress(OSError):
            return (self.folder / "output.log").read_text(errors="replace")[-2_000:]
        return ""

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + START_WITHIN
        while time.monotonic() < until:
            if process.poll() is not None:
                raise ServerFailed(f"{self.name} ended with {process.returncode} at its start:\n{self.output()}")
            with contextlib.suppress(OSError):
                if self.is_ready():
                    return
            time.sleep(0.02)  # a server that starts sends no signal
        raise ServerFailed(f"{self.name} did not answer within {START_WITHIN:g} s:\n{self.output()}")


def is_stopped(pid: int) -> bool:
    """Whether every thread of a process is stopped."""
    states = [
        task.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return all(state in "TtZX" for state in states)


def free_port() -> int:
    """A port on which no process listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
