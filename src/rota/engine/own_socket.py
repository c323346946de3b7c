"""Answers `rota health --self`: whether the loops of this node turn. It asks neither the store nor a port."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING

import msgspec

from rota.inspector.own_nodes import IS_SUPPORTED, PREFIX, NodeAnswer, is_trusted

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("rota.node")

WAITING = 16  # connections that the kernel holds until this thread accepts them


class OwnSocket:
    """Listens under the node's id, in one thread, until it is closed."""

    def __init__(self, node_id: str, answer: Callable[[], NodeAnswer]) -> None:
        self._name = f"\0{PREFIX}{node_id}"
        self._answer = answer
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """A node works without it: if the system refuses the socket, a check finds no node."""
        if not IS_SUPPORTED:
            return
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(self._name)
            listening.listen(WAITING)
        except OSError as err:
            listening.close()
            log.warning("`rota health --self` will not find this node: %s", err)
            return
        self._socket = listening
        self._thread = threading.Thread(target=self._serve, args=(listening,), name="rota-own-socket", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._socket is None or self._thread is None:
            return
        self._socket.shutdown(socket.SHUT_RDWR)  # ends the wait for a connection
        self._thread.join(timeout=1.0)
        self._socket.close()
        self._socket = None

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                self._respond(connection)

    def _respond(self, connection: socket.socket) -> None:
        try:
            if is_trusted(connection):
                connection.sendall(msgspec.json.encode(self._answer()))
        except OSError:
            return  # it has hung up
