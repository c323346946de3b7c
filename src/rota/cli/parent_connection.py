"""Connects a worker to the parent process that watches it, from two threads of its own.

One reports once a second that the worker is alive, and how its loops are. If a task holds the interpreter, or the
process is stopped, the parent receives nothing. The other thread receives the parent's messages. When the connection
closes, the parent is gone, and the worker drains by itself.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

from rota.errors import StoreError
from rota.supervisor.plan import CONNECTION

if TYPE_CHECKING:
    from rota.cli.stopping import Stopping
    from rota.engine.events import Event
    from rota.engine.node import Node

log = logging.getLogger("rota.cli")

BEAT = 1.0  # seconds
TRY_AGAIN = 2.0  # seconds, if a death cannot be recorded in the store


class ParentConnection:
    """The connection, as the parent has described it in the environment."""

    def __init__(self, descriptor: int, processes: int, *, shows_banner: bool, place: int = 0) -> None:
        self.processes = processes  # how many the parent runs
        self.shows_banner = shows_banner
        self.place = place  # of this worker among them, from 0
        self._connection = socket.socket(fileno=descriptor)
        self._connection.set_inheritable(False)
        self._sending = threading.Lock()

    @classmethod
    def taken(cls) -> ParentConnection | None:
        """This process's connection, if a parent has started it; taken out of the environment, it is nobody else's."""
        about = os.environ.pop(CONNECTION, None)
        return cls(**json.loads(about)) if about else None

    def introduce(self, event: Event) -> None:
        """Send the node's name before it claims anything: should it die, the parent must know whose jobs to free."""
        self._send(node=event.data["node"])

    def hold(self, node: Node, stopping: Stopping) -> None:
        """Report from now on that this worker is up, and obey the parent."""
        self._send_heartbeat(node)
        if signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL:
            faulthandler.register(signal.SIGUSR2, file=2, all_threads=True)  # the parent asks before it kills
        for target, args in ((self._send_heartbeats, (node,)), (self._receive, (node, stopping))):
            threading.Thread(target=target, args=args, name="rota-parent", daemon=True).start()

    def _send_heartbeats(self, node: Node) -> None:
        pause = threading.Event()
        while self._send_heartbeat(node):
            pause.wait(BEAT)

    def _send_heartbeat(self, node: Node) -> bool:
        return self._send(well=node.is_healthy, stuck=node.stuck, drain_for=node.settings.drain_for)

    def _receive(self, node: Node, stopping: Stopping) -> None:
        with self._connection.makefile("rb") as lines:
            for line in lines:
                self._obey(json.loads(line), node, stopping)
        stopping.ask("the parent process is gone")

    def _obey(self, message: dict[str, Any], node: Node, stopping: Stopping) -> None:
        match message:
            case {"drain": why}:
                stopping.ask(why)
            case {"stop_now": _}:
                stopping.stop_now()
            case {"died": dead, "how": how}:
                threading.Thread(
                    target=self._take_over, args=(node, dead, how), name="rota-take-over", daemon=True
                ).start()

    def _take_over(self, node: Node, dead: str, how: str) -> None:
        """Settle the jobs of a worker that has died. The parent remembers it until that is done."""
        pause = threading.Event()
        while True:
            try:
                freed = node.take_over(dead, how)
            except StoreError as err:
                log.warning("the jobs of %s cannot be freed yet: %s", dead, err)
                pause.wait(TRY_AGAIN)
                continue
            log.info("node %s %s; it held %s", dead, how, f"{freed} jobs" if freed != 1 else "1 job")
            self._send(recorded=dead)
            return

    def _send(self, **message: Any) -> bool:
        """Send a message; False if the parent is gone."""
        try:
            with self._sending:
                self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True
