"""Limits how long a conversation with a receiver takes, however slowly its bytes come.

A socket's own timeout begins again with every byte.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class TimeLimit:
    """Shuts a socket down when the time is over, which ends every call on it in other threads."""

    def __init__(self, seconds: float, socket_of: Callable[[], socket.socket | None]) -> None:
        self.is_over = False
        self._socket_of = socket_of  # TLS and an error replace the socket of a connection
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _err: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        sock = self._socket_of()
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
