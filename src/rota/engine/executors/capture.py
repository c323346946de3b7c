"""Capture: what a job prints or logs becomes its log; what anyone else prints goes where it always went.

Python's streams and its root logger are wrapped once per process. Each write looks at the context that it comes from:
inside a run it goes to that run's log, elsewhere it passes through. A job that prints nothing pays nothing.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from rota.engine.executors.run import current_run

if TYPE_CHECKING:
    from codecs import IncrementalDecoder
    from collections.abc import Callable, Iterable

    from _typeshed import ReadableBuffer

    from rota.engine.executors.run import Run

MOST_LINES = 10_000
MOST_BYTES = 1024 * 1024
LONGEST_LINE = 64 * 1024  # a line that never ends is cut here

_Decoder = getincrementaldecoder("utf-8")


class JobLog:
    """The lines that one run has written and the store has not yet taken."""

    def __init__(self, now: Callable[[], int], hide: Callable[[str], str] = str) -> None:
        self._now = now
        self._hide = hide  # what the job must not tell
        self.flushing = threading.RLock()  # held while lines are on their way to the store
        self._lock = threading.Lock()
        self._lines: list[tuple[int, str, str]] = []  # time, level, text
        self._open: dict[str, str] = {}  # level -> a line that has not ended yet
        self._decoders: dict[str, IncrementalDecoder] = {}  # level -> the half of a character that bytes ended with
        self._in_flight: list[tuple[int, str, str]] = []  # taken, and not yet known to be in the store
        self._count = 0
        self._bytes = 0
        self._is_full = False

    def write(self, level: str, text: str) -> None:
        """Take text as it comes; whole lines are kept, the rest waits for its end."""
        with self._lock:
            *lines, rest = (self._open.pop(level, "") + text).split("\n")
            for line in lines:
                self._keep(level, line)
            while len(rest) > LONGEST_LINE:
                self._keep(level, rest[:LONGEST_LINE])
                rest = rest[LONGEST_LINE:]
            if rest:
                self._open[level] = rest

    def write_bytes(self, level: str, data: bytes) -> None:
        """Take bytes as UTF-8; what is none is shown as \\xff."""
        with self._lock:
            decoder = self._decoders.setdefault(level, _Decoder("backslashreplace"))
            text = decoder.decode(data)
        self.write(level, text)

    def line(self, level: str, text: str) -> None:
        """Take a whole line (a log record, which may span several)."""
        with self._lock:
            self._keep(level, text)

    def put_back(self, lines: list[tuple[int, str, str]]) -> None:
        """Keep lines that could not be written for the next try."""
        with self._lock:
            self._in_flight = []
            self._lines = lines + self._lines

    def kept(self) -> None:
        """The store has what was taken."""
        with self._lock:
            self._in_flight = []

    def take(self, *, is_over: bool = False) -> list[tuple[int, str, str]]:
        """The lines so far; at the end also what was begun and not ended."""
        with self._lock:
            if is_over:
                for level, rest in self._open.items():
                    self._keep(level, rest)
                self._open.clear()
                self._lines = self._in_flight + self._lines  # a line that comes twice is better than none
            lines, self._lines = self._lines, []
            self._in_flight = lines
            return lines

    def _keep(self, level: str, text: str) -> None:
        if self._is_full:
            return
        kept = self._hide(text).replace("\x00", "\N{SYMBOL FOR NULL}").rstrip("\r").encode("utf-8", "backslashreplace")
        text = kept.decode()
        self._count += 1
        self._bytes += len(kept)
        if self._count > MOST_LINES or self._bytes > MOST_BYTES:
            self._is_full = True
            level, text = "system", f"the log is full ({MOST_LINES:,} lines or 1 MiB); what follows is not kept"
        self._lines.append((self._now(), level, text))


class _Bytes(io.BufferedIOBase):
    """What lies under a job's sys.stdout: bytes become lines of its log, too."""

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
        """A job that closes stdout closes nobody else's."""
        if current_run() is None:
            self._original.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Handler(logging.Handler):
    """The root logger's records, given to the run that they come from."""

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
        self._handler = _Handler()
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
            run.log = JobLog(run.host.now, run.hide)
        return run.log


def level_of(number: int) -> str:
    """A log record's level in the words of job logs."""
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"
