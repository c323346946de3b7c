"""Child: the life of a process that runs tasks for a worker: it takes an order, runs it, says how it ended.

What the task writes goes to its job's log: text of Python's own streams and log records over the socket, in order;
everything else (C code, subprocesses) through the descriptors 1 and 2, which are pipes to the worker.
"""

from __future__ import annotations

import ctypes
import io
import json
import logging
import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rota.engine.executors.capture import level_of
from rota.engine.executors.job_log import MOST_BYTES
from rota.engine.executors.messages import Frames, Message, Output, Progress, RunRequest, Started, ended, pack
from rota.engine.executors.run import Host, Run, describe, outcome_of, run_here
from rota.engine.executors.sources import find_task
from rota.model.outcome import Failed, Outcome
from rota.model.redaction import Redaction
from rota.tasks.signals import Cancel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.tasks.task import Task

CHUNK = 32 * 1024  # characters sent at once
ENOUGH = 4 * MOST_BYTES  # what is written after that is not even sent: the job's log is full
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Serve the worker until it hangs up. (The command: paths, the socket, the worker's own stderr, its pid.)"""
    control, terminal, parent = (json.loads(word) for word in sys.argv[2:5])
    sys.argv = [sys.executable]
    libc = ctypes.CDLL(None)
    with suppress(AttributeError):  # Linux only; elsewhere the socket's end will do
        libc.prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker decides what a Ctrl-C means
    Child(socket.socket(fileno=control), terminal, libc).serve()


class Child:
    """One process, one task at a time."""

    def __init__(self, channel: socket.socket, terminal: int, libc: ctypes.CDLL) -> None:
        self._channel = channel
        self._libc = libc
        self._pid = os.getpid()
        self._pipes = (os.dup(1), os.dup(2))
        self._terminal = open(terminal, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
        os.set_inheritable(terminal, False)  # noqa: FBT003
        os.set_inheritable(channel.fileno(), False)  # noqa: FBT003
        self._sending = threading.Lock()
        self._sent = 0  # characters of this job's output
        self._run: Run | None = None  # the one that SIGTERM is about
        self._must_raise = False
        self._host = Host(
            lambda _run, _outcome: None, end_in=_refuse_transaction, on_progress=self._tell_progress
        )  # the worker hears of the end by the channel

    def serve(self) -> None:
        frames = Frames()
        while data := self._channel.recv(1 << 16):
            for message in frames.feed(data):
                if isinstance(message, RunRequest):
                    self._obey(message)

    def say(self, level: str, text: str, *, is_record: bool = False) -> bool:
        """Send what the task wrote; False where this is a fork of the child, which has no say on the socket."""
        if os.getpid() != self._pid:
            return False
        for start in range(0, len(text), CHUNK):
            if self._sent <= ENOUGH:
                part = text[start : start + CHUNK].encode("utf-8", "backslashreplace").decode()
                self._send(Output(level, part, is_record))
            self._sent += CHUNK
        self._sent -= -len(text) % CHUNK
        return True

    def _obey(self, order: RunRequest) -> None:
        self._sent = 0
        sys.stdout = sys.stderr = self._terminal  # what a module sets up while it is imported is not the job's
        logging.getLogger().setLevel(order.log_level)
        outcome = self._outcome(order)
        if os.getpid() != self._pid:  # a fork that the task left behind comes out here
            os._exit(0)
        for stream in (sys.__stdout__, sys.__stderr__):
            with suppress(Exception):
                stream.flush()  # type: ignore[union-attr]
        self._libc.fflush(None)
        self._send(ended(outcome))

    def _outcome(self, order: RunRequest) -> Outcome:
        try:
            task = find_task(order.source, order.job.task)
        except BaseException as err:  # noqa: BLE001 - a module may raise anything while it is imported
            place = order.source.file or order.source.module
            return Failed(f"{order.job.task} cannot be loaded from {place}: {describe(err)}", may_retry=False)
        run = Run(order.job, self._host._replace(redaction=Redaction(order.redact)))
        problem = run.prepare(_Only(task))
        if problem is not None:
            return problem
        with self._streams():
            return self._call(run)

    def _tell_progress(self, text: str) -> None:
        if os.getpid() == self._pid:
            self._send(Progress(text))

    def _call(self, run: Run) -> Outcome:
        self._must_raise = False
        signal.signal(signal.SIGTERM, self._on_term)  # anew: the last task may have set its own
        self._send(Started())
        self._run = run
        try:
            return run_here(run)
        except BaseException as err:  # noqa: BLE001 - the interruption may come a moment too late
            return outcome_of(err, run)
        finally:
            self._run = None

    @contextmanager
    def _streams(self) -> Iterator[None]:
        """Descriptors, streams and log records are the job's, whatever the last one did to them."""
        for descriptor, pipe in zip((1, 2), self._pipes, strict=True):
            os.dup2(pipe, descriptor)
        sys.stdout, sys.stderr = _Stream(self, 1, "info"), _Stream(self, 2, "error")
        handler = _Records(self)
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)
            sys.stdout = sys.stderr = self._terminal

    def _on_term(self, _number: int, _frame: object) -> None:
        """Asked to stop: first current_job.cancelled says so; asked again, the task is interrupted."""
        run = self._run
        if run is None or os.getpid() != self._pid:
            return
        if run.stop_reason is None:
            run.stop_reason = "cancelled"
        elif self._sending.locked():
            self._must_raise = True  # half a message would be the end of all of them
        else:
            raise Cancel(run.stop_reason)

    def _send(self, message: Message) -> None:
        data = pack(message)
        with self._sending:
            try:
                self._channel.sendall(data)
            except OSError:
                os._exit(70)  # the worker is gone, or the task has closed what is not its own
        if self._must_raise and self._run is not None and threading.current_thread() is threading.main_thread():
            self._must_raise = False
            raise Cancel(self._run.stop_reason or "cancelled")


class _Stream(io.TextIOWrapper):
    """sys.stdout or sys.stderr: text goes over the socket, in order; bytes to the descriptor."""

    def __init__(self, child: Child, descriptor: int, level: str) -> None:
        raw: Any = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._child = child
        self._level = level

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return len(text) if self._child.say(self._level, text) else super().write(text)

    def close(self) -> None:
        """A job that closes stdout closes nobody else's."""


class _Records(logging.Handler):
    """The root logger's records, with their level."""

    def __init__(self, child: Child) -> None:
        super().__init__()
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("rota."):
            return
        try:
            self._child.say(level_of(record.levelno), self.format(record), is_record=True)
        except Exception:  # noqa: BLE001 - a record that cannot be formatted must not fail the job
            self.handleError(record)


class _Only:
    """The one task that this run may find, under whatever name."""

    def __init__(self, task: Task[Any, Any]) -> None:
        self._task = task

    def find(self, _name: str) -> Task[Any, Any]:
        return self._task


def _refuse_transaction(_run: Run, _transaction: object, _result: object) -> bool:
    raise LookupError("finish_in() needs the worker's own store; a task with executor='process' cannot use it")
