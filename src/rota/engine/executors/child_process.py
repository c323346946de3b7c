"""Starts one child process, exchanges messages with it, measures its memory, and stops it."""

from __future__ import annotations

import codecs
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rota.engine.executors.messages import Frames, Output, pack

if TYPE_CHECKING:
    from rota.engine.executors.messages import Message

READ = 1 << 16
MOST_READS = 32  # of one pipe in a turn, so that no flood keeps the others waiting
PAGE = os.sysconf("SC_PAGE_SIZE")
END_WITHIN = 1.0  # seconds for a child to end by itself
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from rota.engine.executors.child import main; main()"


class ChildProcess:
    """Started by exec, never a fork of this process; in a session of its own, so that a Ctrl-C does not reach it."""

    def __init__(self) -> None:
        self.started_at = time.monotonic()
        self.jobs = 0
        self.rss = 0  # bytes, when last measured
        self.is_disconnected = False  # its end of the socket is closed
        self._channel, theirs = socket.socketpair()
        try:
            self._process = _start(theirs)
        except OSError:
            self._channel.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._channel.settimeout(0)
        self._frames = Frames()
        self._outgoing = bytearray()
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)
        self._pipes: dict[int, _Pipe] = {}
        for stream, level in ((self._process.stdout, "info"), (self._process.stderr, "error")):
            assert stream is not None  # noqa: S101 - both are pipes
            os.set_blocking(stream.fileno(), False)
            self._pipes[stream.fileno()] = _Pipe(level)
            self._poll.register(stream, select.POLLIN)

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def send(self, message: Message) -> None:
        """Queue a message; turn() sends it as fast as the child reads it."""
        self._outgoing += pack(message)
        self._write()

    def turn(self, seconds: float) -> list[Message]:
        """Wait for messages of the child and return them. Raw output comes before messages."""
        ready = [descriptor for descriptor, _ in self._poll.poll(max(0.0, seconds) * 1000)]
        if self._outgoing:
            self._write()
        messages: list[Message] = []
        for descriptor in ready:
            if descriptor in self._pipes:
                messages += self._read_pipe(descriptor)
        return messages + (self._read_channel() if self._channel.fileno() in ready else [])

    def read_rest(self) -> list[Message]:
        """The messages and output that are still in the pipes."""
        messages = [said for descriptor in list(self._pipes) for said in self._read_pipe(descriptor)]
        return messages + ([] if self.is_disconnected else self._read_channel())

    def measure_memory(self) -> int:
        """Its resident memory."""
        with suppress(OSError, ValueError, IndexError):
            self.rss = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]) * PAGE or self.rss
        return self.rss

    def ask_to_stop(self) -> None:
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kill it at once, with all processes of its session, and reap it."""
        if self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Close its socket, so that it ends; kill it if it does not."""
        self._channel.close()
        if not self.wait(END_WITHIN):
            self.kill()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _write(self) -> None:
        try:
            del self._outgoing[: self._channel.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # it is dead, which exit_code shows
        events = select.POLLIN | select.POLLOUT if self._outgoing else select.POLLIN
        if not self.is_disconnected:
            self._poll.modify(self._channel, events)

    def _read_channel(self) -> list[Message]:
        messages: list[Message] = []
        for _ in range(MOST_READS):
            try:
                data = self._channel.recv(READ)
            except BlockingIOError:
                return messages
            except OSError:
                data = b""
            if not data:
                self.is_disconnected = True
                self._poll.unregister(self._channel)
                return messages
            messages += self._frames.feed(data)
        return messages

    def _read_pipe(self, descriptor: int) -> list[Message]:
        pipe = self._pipes[descriptor]
        texts = []
        for _ in range(MOST_READS):
            try:
                data = os.read(descriptor, READ)
            except BlockingIOError:
                break
            if not data:
                del self._pipes[descriptor]
                self._poll.unregister(descriptor)
                break
            texts.append(pipe.decoder.decode(data))
        return [Output(pipe.level, text) for text in texts if text]


class _Pipe:
    """A descriptor's level, and the bytes of a character that has not ended yet."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")


def _start(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """A new interpreter that imports Rota, and no main module: no script runs twice."""
    terminal = _own_stderr()
    words = ([str(folder) for folder in sys.path], theirs.fileno(), terminal, os.getpid())
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-P", "-c", START, *map(json.dumps, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(theirs.fileno(), terminal),
            start_new_session=True,
        )
    finally:
        os.close(terminal)


def _own_stderr() -> int:
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
