"""The handler of log lines: whole lines on pipes that several processes share, are full, or have lost their reader."""

from __future__ import annotations

import io
import logging
import os
import runpy
import select
import threading

import pytest

from rota.observe import line_handler
from rota.observe.line_handler import ATOMIC, LineHandler, parts_of

RECORD = logging.LogRecord("rota.job", logging.INFO, "", 0, "lines", (), None)


class Pipe:
    """A pipe whose end for writing is a stream like stderr."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.streams: list[io.TextIOWrapper] = []

    def handler(self, *, has_buffer: bool = True) -> LineHandler:
        """On a stream that is like stderr; without a buffer, as with PYTHONUNBUFFERED."""
        file = open(os.dup(self.writer), "wb", buffering=-1 if has_buffer else 0)  # noqa: PTH123, SIM115
        stream = io.TextIOWrapper(file, "utf-8", "backslashreplace", line_buffering=True, write_through=not has_buffer)
        self.streams.append(stream)
        return LineHandler(stream)

    def read(self) -> list[str]:
        """All lines, until the last writer has closed it."""
        with open(self.reader, encoding="utf-8", closefd=False) as lines:
            return lines.read().splitlines()

    def drop(self) -> None:
        """Close it, with what a stream could not write: it goes to a place that accepts all."""
        for stream in self.streams:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        self.close()

    def close(self) -> None:
        os.close(self.writer)
        for stream in self.streams:
            stream.close()


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    os.close(pipe.reader)


def numbered(name: str, count: int) -> list[str]:
    return [f"{name} {number:05d} {'x' * 60}" for number in range(count)]


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("most", [10, 100, 1_000])
def test_parts_are_whole_lines_of_a_limited_size(most):
    lines = [*numbered("a", 5), "", "z" * 500, *numbered("b", 5)]
    parts = list(parts_of(text_of(lines), most))
    assert "".join(parts) == text_of(lines)
    assert all(part.endswith("\n") for part in parts)
    assert all(len(part) <= most or part.count("\n") == 1 for part in parts)


def test_lines_of_several_writers_to_one_pipe_stay_whole(pipe):
    names = ("ann", "bob", "cid")
    handlers = [pipe.handler() for _ in names]

    def write(handler: LineHandler, name: str) -> None:
        for _ in range(4):
            handler.write_lines(text_of(numbered(name, 1_000)), RECORD)

    threads = [threading.Thread(target=write, args=pair) for pair in zip(handlers, names, strict=True)]
    for thread in threads:
        thread.start()
    closing = threading.Thread(target=lambda: ([thread.join() for thread in threads], pipe.close()))
    closing.start()
    found = pipe.read()
    closing.join()
    for name in names:
        assert [line for line in found if line.startswith(name)] == numbered(name, 1_000) * 4
    assert len(found) == 12_000


def test_lines_of_other_letters_reach_a_pipe_in_parts_that_stay_whole(pipe):
    sizes: list[int] = []
    handler = pipe.handler()
    real = handler.stream

    class Noting:
        def write(self, text: str) -> int:
            sizes.append(len(text.encode("utf-8", "backslashreplace")))
            return real.write(text)

        def flush(self) -> None:
            real.flush()

    handler.stream = Noting()
    lines = ["почта\udc80送信" * 20] * 100
    thread = threading.Thread(target=lambda: (handler.write_lines(text_of(lines), RECORD), pipe.close()))
    thread.start()
    found = pipe.read()
    thread.join()
    assert found == [line.replace("\udc80", "\\udc80") for line in lines]
    assert max(sizes) <= ATOMIC


@pytest.mark.parametrize(("has_poll", "has_buffer"), [(True, True), (False, True), (True, False)])
def test_a_full_pipe_that_does_not_block_loses_nothing(pipe, monkeypatch, has_poll, has_buffer):
    if not has_poll:
        monkeypatch.delattr(select, "poll")
    handler = pipe.handler(has_buffer=has_buffer)
    os.set_blocking(handler.stream.fileno(), False)
    lines = numbered("ann", 10_000)
    is_full = threading.Event()
    real = line_handler._wait_until_writable

    def wait(stream, seconds):
        is_full.set()
        real(stream, seconds)

    line_handler._wait_until_writable = wait

    def write() -> None:
        handler.write_lines(text_of(lines), RECORD)
        handler.handle(RECORD)
        pipe.close()

    thread = threading.Thread(target=write)
    try:
        thread.start()
        assert is_full.wait(30)  # nobody reads before
        assert pipe.read() == [*lines, "lines"]
        thread.join()
    finally:
        line_handler._wait_until_writable = real


def test_a_system_without_poll_and_atomic_writes_can_load_and_use_it(monkeypatch):
    """As Windows is."""
    monkeypatch.delattr(select, "poll")
    monkeypatch.delattr(select, "PIPE_BUF")
    loaded, stream = runpy.run_path(line_handler.__file__), io.StringIO()
    loaded["LineHandler"](stream).write_lines(text_of(numbered("ann", 100)), RECORD)
    assert stream.getvalue() == text_of(numbered("ann", 100))


def test_a_full_pipe_that_is_never_read_stops_nobody_for_ever(pipe, monkeypatch):
    monkeypatch.setattr(line_handler, "PATIENCE", 0.01)
    handler, failed = pipe.handler(), []
    monkeypatch.setattr(handler, "handleError", failed.append)
    os.set_blocking(handler.stream.fileno(), False)
    handler.write_lines(text_of(numbered("ann", 10_000)), RECORD)
    assert failed == [RECORD]
    pipe.drop()


def test_a_reader_that_is_gone_stops_nobody(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    stream = io.TextIOWrapper(io.FileIO(writer, "w"), write_through=True)
    handler, failed = LineHandler(stream), []
    monkeypatch.setattr(handler, "handleError", failed.append)
    handler.write_lines("one\ntwo\n", RECORD)
    handler.handle(RECORD)
    assert failed == [RECORD, RECORD]
    stream.close()
