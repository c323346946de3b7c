"""Runs tasks in a child process: it receives a request, runs the task, and reports the outcome.

What the task writes goes to its job's log. What Python's own streams and log records write goes over the socket, in
order. Everything else (C code, subprocesses) goes through the descriptors 1 and 2, which are pipes to the worker.
"""

from __future__ import annotations

import codecs
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
from rota.engine.executors.messages import Frames, Message, Output, Progress, RunRequest, Secrets, Started, ended, pack
from rota.engine.executors.run import Host, Run, describe, outcome_of, run_here
from rota.engine.executors.sources import find_task
from rota.errors import MiddlewareError
from rota.model.jobs.outcome import Failed, Outcome
from rota.model.secrets.redaction import Redaction
from rota.tasks.middleware import names_of
from rota.tasks.signals import Cancel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rota.tasks.task import Task

CHUNK = 32 * 1024  # characters sent at once
MOST_SENT = 4 * MOST_BYTES  # characters; later output is not even sent, because the job's log is full
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Serve the worker until it closes the socket. (Arguments: paths, the socket, the worker's own stderr, its pid.)"""
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
        self.pid = os.getpid()
        self._pipes = (os.dup(1), os.dup(2))
        self._terminal = open(terminal, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
        os.set_inheritable(terminal, False)  # noqa: FBT003
        os.set_inheritable(channel.fileno(), False)  # noqa: FBT003
        self._sending = threading.Lock()
        self._sent = 0  # characters of this job's output
        self._run: Run | None = None  # the run that SIGTERM stops
        self._must_raise = False
        self._host = Host(
            lambda _run, _outcome: None,  # the worker learns of the end from the channel
            end_in=_refuse_transaction,
            on_progress=self._send_progress,
            on_secrets=self._send_secrets,
        )

    def serve(self) -> None:
        frames = Frames()
        while data := self._channel.recv(1 << 16):
            for message in frames.feed(data):
                if isinstance(message, RunRequest):
                    self._serve(message)

    def say(self, level: str, text: str, *, is_record: bool = False) -> bool:
        """Send what the task wrote; False in a fork of the child, which must not use the socket."""
        if os.getpid() != self.pid:
            return False
        for start in range(0, len(text), CHUNK):
            if self._sent <= MOST_SENT:
                part = text[start : start + CHUNK].encode("utf-8", "backslashreplace").decode()
                self._send(Output(level, part, is_record))
            self._sent += CHUNK
        self._sent -= -len(text) % CHUNK
        return True

    def _serve(self, request: RunRequest) -> None:
        self._sent = 0
        sys.stdout = sys.stderr = self._terminal  # output of a module that is imported is not the job's
        logging.getLogger().setLevel(request.log_level)
        outcome = self._outcome(request)
        if os.getpid() != self.pid:  # a fork that the task has left behind returns here
            os._exit(0)
        for stream in (sys.__stdout__, sys.__stderr__):
            with suppress(Exception):
                stream.flush()  # type: ignore[union-attr]  # one that is None is suppressed, too
        self._libc.fflush(None)
        self._send(ended(outcome))

    def _outcome(self, request: RunRequest) -> Outcome:
        try:
            task = find_task(request.source, request.job.task)
        except BaseException as err:  # noqa: BLE001 - a module may raise anything while it is imported
            place = request.source.file or request.source.module
            return Failed(f"{request.job.task} cannot be loaded from {place}: {describe(err)}", may_retry=False)
        if names_of(task.middleware) != request.middleware:
            return Failed(_other_middleware(request, task), may_retry=False)
        vars(task.sender)["checks_types"] = request.checks_types  # as the worker's settings, or `rota dev`, say
        run = Run(request.job, self._host._replace(redaction=Redaction(request.redact)))
        problem = run.prepare(_Only(task))
        if problem is not None:
            return problem
        with self._streams():
            return self._call(run)

    def _send_progress(self, text: str) -> None:
        if os.getpid() == self.pid:
            self._send(Progress(text))

    def _send_secrets(self, texts: tuple[str, ...]) -> None:
        if os.getpid() == self.pid:
            self._send(Secrets(texts))

    def _call(self, run: Run) -> Outcome:
        self._must_raise = False
        signal.signal(signal.SIGTERM, self._on_term)  # for each task: the last one may have set its own
        self._send(Started())
        self._run = run
        try:
            return run_here(run)
        except BaseException as err:  # noqa: BLE001 - the interruption may come after the task has returned
            return outcome_of(err, run)
        finally:
            self._run = None

    @contextmanager
    def _streams(self) -> Iterator[None]:
        """Give descriptors, streams and log records to this job, whatever the last one did to them."""
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
        """Asked to stop: first current_job.cancelled is set; the second time, the task is interrupted."""
        run = self._run
        if run is None or os.getpid() != self.pid:
            return
        if run.stop_reason is None:
            run.stop_reason = "cancelled"
        elif self._sending.locked():
            self._must_raise = True  # half a message would break the channel
        else:
            raise Cancel(run.stop_reason)

    def _send(self, message: Message) -> None:
        data = pack(message)
        with self._sending:
            try:
                self._channel.sendall(data)
            except OSError:
                os._exit(70)  # the worker has ended, or the task has closed the socket
        if self._must_raise and self._run is not None and threading.current_thread() is threading.main_thread():
            self._must_raise = False
            raise Cancel(self._run.stop_reason or "cancelled")


class _Stream(io.TextIOWrapper):
    """sys.stdout or sys.stderr: text and bytes go over the socket, in the order in which they are written."""

    def __init__(self, child: Child, descriptor: int, level: str) -> None:
        raw: Any = _Bytes(child, descriptor, level)
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._child = child
        self._level = level

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return len(text) if self._child.say(self._level, text) else super().write(text)

    def close(self) -> None:
        """A job that closes stdout closes only its own."""


class _Bytes(io.RawIOBase):
    """The buffer of such a stream. Through the descriptor, bytes could come between the words of a printed line."""

    def __init__(self, child: Child, descriptor: int, level: str) -> None:
        super().__init__()
        self._child = child
        self._descriptor = descriptor
        self._level = level
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Any, /) -> int:
        given = bytes(data)
        if os.getpid() != self._child.pid:
            return os.write(self._descriptor, given)
        self._child.say(self._level, self._decoder.decode(given))
        return len(given)


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


def _other_middleware(request: RunRequest, task: Task[Any, Any]) -> str:
    theirs, ours = (", ".join(names) or "none" for names in (request.middleware, names_of(task.middleware)))
    return (
        f"{MiddlewareError.__name__}: {request.job.task} was loaded in a process of its own, whose app has other "
        f"middleware ({ours}) than the worker's ({theirs}); call app.use() in the module that makes the app"
    )


def _refuse_transaction(_run: Run, _transaction: object, _result: object) -> bool:
    raise LookupError("finish_in() needs the worker's own store; a task with executor='process' cannot use it")
