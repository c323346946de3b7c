"""Starts one worker process, exchanges messages with it, measures it, and ends it.

Parent and worker share one socket. Once a second the worker sends a heartbeat with its state. The parent sends when to
drain, and which worker has died. If one of them closes the socket, the other notices.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rota.supervisor.plan import CONNECTION

if TYPE_CHECKING:
    from rota.supervisor.plan import Plan

READ = 1 << 16
MEGABYTE = 1024**2
STACKS_WITHIN = 1.0  # seconds in which a silent worker writes the stacks of its threads, before it is killed
TO_RETURN = 30.0  # seconds that a worker may take beyond its drain, to return what still runs
TO_STOP_NOW = 15.0  # … and when it was asked to end at once


class End(NamedTuple):
    """How a process ended: its exit code, or minus the signal; and its highest use of memory."""

    code: int
    peak: int

    def __str__(self) -> str:
        return f"{_how(self.code)}, with at most {self.peak / MEGABYTE:.0f} MB"


class WorkerProcess:
    """A worker that was started by exec, in a process group of its own: a Ctrl-C reaches only its parent."""

    def __init__(self, plan: Plan, *, generation: int, shows_banner: bool, place: int = 0) -> None:
        self.generation = generation
        self.born_at = time.monotonic()
        self.node = ""  # its id in the store, which it sends before it claims anything
        self.is_up = False  # it has sent its first heartbeat
        self.age = 0.0  # seconds that the parent has watched it, …
        self.silent_for = 0.0  # … since its last message, …
        self.unwell_for = 0.0  # … since all of its loops turned, …
        self.stuck_for = 0.0  # … and since none of its slots ran an abandoned job
        self.rss = 0
        self.is_leaving = False
        self.killed_for = ""  # why the parent killed it, if it did
        self._drain_for = 0.0  # seconds that it waits for its running jobs
        self._is_well = True
        self.stuck = 0
        self._has_answered = False
        self._asked_at = 0.0  # when it was last asked to end …
        self._end_within: float | None = None  # … and how long that may take; None: as long as it drains
        self._rest = b""
        self.connection, theirs = socket.socketpair()
        self.connection.setblocking(False)  # noqa: FBT003
        try:
            self.pid = _spawn(plan, theirs.fileno(), shows_banner=shows_banner, place=place)
        except OSError:
            self.connection.close()
            raise
        finally:
            theirs.close()

    # Messages to it.

    def drain(self, why: str, number: int = signal.SIGTERM) -> None:
        """Have it drain. A worker that is not up yet has nothing to finish, and receives only signals."""
        if self.is_leaving:
            return
        self.is_leaving, self._asked_at = True, time.monotonic()
        self.send(drain=why)
        if not self.is_up:
            self.signal(number)

    def stop_now(self) -> None:
        """Have it return all running jobs now."""
        self._asked_at, self._end_within = time.monotonic(), TO_STOP_NOW
        self.send(stop_now=True)
        if not self.is_up:
            self.signal(signal.SIGKILL)

    def send(self, **message: Any) -> bool:
        """Send a message; False if it cannot receive any."""
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True

    def kill(self, why: str) -> None:
        """Kill it, at once or after it has written its stacks, if it can."""
        if self.killed_for:
            return
        self.is_leaving, self.killed_for = True, why
        if self.is_up and self.state not in "TtZ":
            self._asked_at, self._end_within = time.monotonic(), STACKS_WITHIN
            self.signal(signal.SIGUSR2)  # it writes its stacks, even if a thread holds the interpreter
        else:
            self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send it a signal. Its exit code is not collected yet, so no other process has its pid."""
        os.kill(self.pid, number)

    # Messages from it, and its measurements.

    def receive(self) -> list[dict[str, Any]]:
        """The messages that have arrived, without waiting. Heartbeats are recorded here."""
        try:
            data = self.connection.recv(READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [_message(line) for line in lines]
        for message in messages:
            self._has_answered = True
            if "node" in message:
                self.node = message["node"]
            elif "well" in message:
                self.is_up, self._drain_for = True, message["drain_for"]
                self._is_well, self.stuck = message["well"], message["stuck"]
        return messages

    def observe(self, passed: float) -> None:
        """Add the time that passed to each duration. Time in which the parent itself was stopped does not count."""
        self.age += passed
        self.silent_for = 0.0 if self._has_answered else self.silent_for + passed
        self.unwell_for = 0.0 if self._is_well else self.unwell_for + passed
        self.stuck_for = 0.0 if not self.stuck else self.stuck_for + passed
        self._has_answered = False
        self.rss = _resident(self.pid)
        if self.is_leaving and time.monotonic() >= self._asked_at + self._time_to_end:
            self.killed_for = self.killed_for or "did not end in time"
            self.signal(signal.SIGKILL)

    @property
    def _time_to_end(self) -> float:
        return self._drain_for + TO_RETURN if self._end_within is None else self._end_within

    @property
    def state(self) -> str:
        """The system's letter for its state: R runs, S sleeps, D waits for a disk, T is stopped."""
        return _stat(self.pid, "stat").rpartition(") ")[2][:1] or "Z"


def _spawn(plan: Plan, descriptor: int, *, shows_banner: bool, place: int) -> int:
    os.chdir(plan.folder)  # each time: a deploy may have pointed this path at other code
    about = {"descriptor": descriptor, "shows_banner": shows_banner, "processes": plan.processes, "place": place}
    os.set_inheritable(descriptor, True)  # noqa: FBT003
    return os.posix_spawn(
        plan.command[0],
        plan.command,
        {**os.environ, CONNECTION: json.dumps(about)},
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
        setpgroup=0,
        setsigmask=[],
    )


def _message(line: bytes) -> dict[str, Any]:
    """A message. A task may write anything to any descriptor, so anything else is ignored."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _resident(pid: int) -> int:
    pages = _stat(pid, "statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def _stat(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib is large
            return file.read()
    except OSError:
        return ""


def _how(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed by signal {-code}"
