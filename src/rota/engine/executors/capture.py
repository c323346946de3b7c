"""Turns what a job prints or logs into its job log; all other output goes where it went before.

Python's streams and its root logger are wrapped once per process. Each write looks at the context that it comes from:
inside a run it goes to that run's log, elsewhere it passes through. A job that prints nothing pays nothing.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from rota.engine.executors.job_log import JobLog
from rota.engine.executors.run import current_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import ReadableBuffer

    from rota.engine.executors.run import Run


class _Bytes(io.BufferedIOBase):
    """The buffer under a job's sys.stdout: bytes become lines of its log, too."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        return self._stream.write_bytes(bytes(data))


class _Stream:
    """A stand-in for sys.stdout or sys.stderr."""

    def __init__(self, original: TextIO, level: str) -> None:
        self._original = original
        self._level = level

    def write(self, text: str) -> int:
        run = current_run()
        if run is None:
            return self._original.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        log_of(run).write(self._level, text)
        return len(text)

    def write_bytes(self, data: bytes) -> int:
        run = current_run()
        if run is None:
            return self._original.buffer.write(data)
        log_of(run).write_bytes(self._level, data)
        return len(data)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> io.BufferedIOBase | BinaryIO:
        """The bytes under it: a job's own inside a job."""
        return self._original.buffer if current_run() is None else _Bytes(self)

    def flush(self) -> None:
        if not getattr(self._original, "closed", False):
            self._original.flush()

    def close(self) -> None:
        """A job that closes stdout closes only its own."""
        if current_run() is None:
            self._original.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class CaptureHandler(logging.Handler):
    """The root logger's records, given to the run that they come from. It ignores those of Rota's own loggers."""

    def emit(self, record: logging.LogRecord) -> None:
        run = current_run()
        if run is None or record.name.startswith("rota."):
            return
        try:
            log_of(run).line(level_of(record.levelno), self.format(record))
        except Exception:  # noqa: BLE001 - a record that cannot be formatted must not fail the job
            self.handleError(record)


class Capture:
    """Wraps and unwraps this process's streams; counted, so that two workers share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._handler = CaptureHandler()
        self._originals: tuple[TextIO, TextIO] | None = None

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            self._originals = (sys.stdout, sys.stderr)
            sys.stdout = _Stream(sys.stdout, "info")
            sys.stderr = _Stream(sys.stderr, "error")
            logging.getLogger().addHandler(self._handler)

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users or self._originals is None:
                return
            sys.stdout, sys.stderr = self._originals
            logging.getLogger().removeHandler(self._handler)


capture = Capture()
_making = threading.Lock()


def log_of(run: Run) -> JobLog:
    """The run's log, made with its first line."""
    with _making:
        if run.log is None:
            run.log = JobLog(run.host.now, run.hide, lambda: len(run.secrets[0]) if run.secrets else 0)
        return run.log


def level_of(number: int) -> str:
    """A log record's level in the words of job logs."""
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"
