"""Lines: connections at hand. A pool that is ours is asked for one only when none lies ready."""

from __future__ import annotations

import os
import select
import socket
import struct
from typing import TYPE_CHECKING, Any

import hiredis
from redis._parsers.base import BaseParser
from redis.exceptions import ConnectionError as NoLink
from redis.exceptions import InvalidResponse
from redis.exceptions import TimeoutError as NoAnswer

if TYPE_CHECKING:
    from redis import ConnectionPool

_NOTHING_YET = object()
_pack: Any = hiredis.pack_command  # its stub knows commands of one word alone


class _Lineage:
    """How often this process was forked off: what a parent has open is none of its child's."""

    forks = 0

    @classmethod
    def fork(cls) -> None:
        cls.forks += 1


os.register_at_fork(after_in_child=_Lineage.fork)


class Lines:
    """Connections of a pool; those of a pool that is not ours go back to it after every call."""

    def __init__(self, pool: ConnectionPool, *, keep: bool) -> None:
        self._pool: Any = pool
        self._keep = keep
        self._ready: list[_Line] = []  # the last used comes first; a list's end is safe among threads
        self._forks = _Lineage.forks

    def call(self, parts: tuple[str | bytes, ...]) -> Any:
        """Send a command and wait for the answer; an error that the server answers with is raised."""
        if not self._keep:
            return self._call_once(parts)
        line = self._take()
        try:
            answer = line.call(parts)
        except BaseException:
            self._drop(line)
            raise
        self._ready.append(line)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        while self._ready:
            self._pool.release(self._ready.pop().connection)

    def _call_once(self, parts: tuple[str | bytes, ...]) -> Any:
        connection = self._pool.get_connection()
        try:
            connection.send_packed_command(connection.pack_command(*parts))
            return connection.read_response(disable_decoding=True)
        finally:
            self._pool.release(connection)

    def _take(self) -> _Line:
        if self._forks != _Lineage.forks:
            self._forks, self._ready = _Lineage.forks, []
        while self._ready:
            line = self._ready.pop()
            if line.is_quiet():
                return line
            self._drop(line)
        return _line_of(self._pool.get_connection())

    def _drop(self, line: _Line) -> None:
        line.connection.disconnect()
        self._pool.release(line.connection)


class _Line:
    """A connection by the driver's own means."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._watch = select.poll()
        self._watch.register(connection._sock, select.POLLIN)  # noqa: SLF001 - the driver's own look costs too much

    def is_quiet(self) -> bool:
        """Whether nothing has come since its last answer: a server that went away has left an end to read."""
        return not self._watch.poll(0)

    def call(self, parts: tuple[str | bytes, ...]) -> Any:
        self.connection.send_packed_command(self.connection.pack_command(*parts))
        return self.connection.read_response(disable_decoding=True)


class _DirectLine(_Line):
    """The same straight through the socket: the driver's layers cost more than a short call itself."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._socket = connection._sock  # noqa: SLF001 - connected and logged in by the driver, and closed by it
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse, replyError=BaseParser.parse_error, notEnoughData=_NOTHING_YET
        )
        if type(self._socket) is socket.socket and connection.socket_timeout:
            _let_system_time(self._socket, connection.socket_timeout)

    def call(self, parts: tuple[str | bytes, ...]) -> Any:
        try:
            self._socket.sendall(_pack(parts))
            while (answer := self._reader.gets(False)) is _NOTHING_YET:  # noqa: FBT003 - its only signature: as bytes
                chunk = self._socket.recv(65_536)
                if not chunk:
                    raise NoLink("Connection closed by server.")
                self._reader.feed(chunk)
        except (TimeoutError, BlockingIOError) as err:
            raise NoAnswer("no answer in time") from err
        except OSError as err:
            raise NoLink(str(err)) from err
        return answer


def _let_system_time(link: socket.socket, deadline: float) -> None:
    """Have the system watch the deadline: Python would ask it before every read and write whether it may."""
    span = struct.pack("ll", int(deadline), int(deadline % 1 * 1_000_000))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)
    link.settimeout(None)


def _line_of(connection: Any) -> _Line:
    """By the short way where answers come in the form that it reads."""
    return _DirectLine(connection) if connection.protocol == 2 else _Line(connection)
