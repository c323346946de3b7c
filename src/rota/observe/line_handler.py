"""Writes log lines to a stream: a record's line by itself, the lines of a batch of jobs in few writes.

All records of the process pass through one handler under its lock, so a batch and another record keep their order.
Nothing is buffered: when a call returns, the lines are written.
"""

from __future__ import annotations

import io
import logging
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from rota.engine.executors.capture import CaptureHandler

if TYPE_CHECKING:
    from collections.abc import Iterator

ATOMIC: int = getattr(select, "PIPE_BUF", 512)  # bytes that reach a pipe in one piece; Windows promises no number
MOST_BYTES = 6  # of one character: a lone surrogate is written as \udc80
PATIENCE = 5.0  # seconds for the reader of a full non-blocking pipe; later lines of the batch are then dropped
RETRY = 0.01  # seconds between two tries if the system cannot say when a pipe has room
REPLACEABLE = ("_log", "makeRecord", "handle", "callHandlers")  # methods of Logger that tracing libraries replace


class LineHandler(logging.StreamHandler[TextIO]):
    """Handles records as StreamHandler does, and also accepts formatted lines."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(_buffered(stream))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(f"{self.format(record)}\n")
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 - as every handler: a log that fails must not stop the work that it describes
            self.handleError(record)

    def write_lines(self, text: str, record: logging.LogRecord) -> None:
        """Write whole lines. If that fails, the record is reported in their place."""
        self.acquire()
        try:
            self._write(text)
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001
            self.handleError(record)
        finally:
            self.release()

    def _write(self, text: str) -> None:
        self._flush_in_time()  # the text that a full pipe did not accept before
        for part in parts_of(text, ATOMIC if text.isascii() else ATOMIC // MOST_BYTES):
            with suppress(BlockingIOError):  # the stream keeps a part of this size in its buffer; the flush writes it
                self.stream.write(part)
            self._flush_in_time()

    def _flush_in_time(self) -> None:
        """Flush. If the stream is a full non-blocking pipe, wait for its reader."""
        deadline = 0.0
        while True:
            try:
                return self.flush()
            except BlockingIOError:
                now = time.monotonic()
                deadline = deadline or now + PATIENCE
                if now >= deadline:
                    raise
                _wait_until_writable(self.stream, deadline - now)


def _buffered(stream: TextIO) -> TextIO:
    """The stream, with a buffer. PYTHONUNBUFFERED leaves stderr without one, and what a full pipe does not accept is
    then lost without an error."""
    if not isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        return stream
    return open(stream.fileno(), "w", encoding=stream.encoding, errors=stream.errors, closefd=False)


def parts_of(text: str, most: int) -> Iterator[str]:
    """Whole lines, together at most so many characters; a longer line is a part of its own."""
    begin = 0
    while len(text) - begin > most:
        end = (text.rfind("\n", begin, begin + most) + 1) or (text.find("\n", begin) + 1)
        if not end:
            break
        yield text[begin:end]
        begin = end
    if begin < len(text):
        yield text[begin:]


def sole_handler(logger: logging.Logger, level: int) -> LineHandler | None:
    """The handler that alone receives this logger's records of a level, as they are; None if anything else sees them.

    Code that adds a handler or a filter, or replaces a part of the logging module, wants every record.
    """
    handlers = [handler for handler in _handlers_of(logger) if not isinstance(handler, CaptureHandler)]
    if len(handlers) != 1 or logger.filters or _is_replaced(logger):
        return None
    handler = handlers[0]
    if type(handler) is not LineHandler or handler.filters or handler.level > level:
        return None
    return handler


def _handlers_of(logger: logging.Logger) -> Iterator[logging.Handler]:
    above: logging.Logger | None = logger
    while above is not None:
        yield from above.handlers
        above = above.parent if above.propagate else None


def _is_replaced(logger: logging.Logger) -> bool:
    if type(logger) is not logging.Logger or logging.getLogRecordFactory() is not logging.LogRecord:
        return True
    own = vars(logging)
    return any(getattr(getattr(logging.Logger, name), "__globals__", None) is not own for name in REPLACEABLE)


def _wait_until_writable(stream: TextIO, seconds: float) -> None:
    if not hasattr(select, "poll"):  # on Windows
        time.sleep(min(seconds, RETRY))
        return
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLOUT)
    poll.poll(seconds * 1000)
