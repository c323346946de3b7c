"""Runs services with live lines until a person or a time limit stops them, or something else ends them."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from rota.cli.output import say
from rota.cli.stopping import STOPPED, Stopping

if TYPE_CHECKING:
    from rota.app import App
    from rota.engine.node import Node

TIME_IS_OVER = -2
CHANGED = -3  # the code


class Watching(Stopping):
    """Like Stopping, with messages for a person who watches, and with more reasons to end."""

    def end(self, reason: int) -> None:
        """Stop for this reason. Any thread may call it."""
        self._news.put(reason)

    def end_after(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self.end, args=(TIME_IS_OVER,))
        timer.daemon = True
        timer.start()

    def watch(self, app: App, node: Node, *, reload_drain: float = 2.0) -> int:
        """Wait for a reason to stop, stop, and return the reason."""
        first = self.news()
        drain = min(reload_drain, node.settings.drain_for) if first == CHANGED else node.settings.drain_for
        words = _sentence(first, node, drain)
        if node.worker is not None:
            node.worker.drain()  # before a second signal can come: jobs that it returns must not be claimed again
        say(words)
        threading.Thread(target=self._stop_within, args=(app, drain), name="rota-stop", daemon=True).start()
        while (news := self.news()) != STOPPED:
            if news > 0:
                say("second stop signal received; returning running jobs to their queues")
                node.stop_now()
                first = news if first == CHANGED else first
        return first

    def _stop_within(self, app: App, drain: float) -> None:
        try:
            app.stop(drain=drain)
        finally:
            self._news.put(STOPPED)


def _sentence(first: int, node: Node, drain: float) -> str:
    why = {TIME_IS_OVER: "the time is over", CHANGED: "reloading"}.get(first) or signal.Signals(first).name
    running = node.running
    if not running:
        return why if first == CHANGED else f"{why}: stopping"
    more = "" if first == CHANGED else "; Ctrl-C stops at once"
    return f"{why}: waiting up to {drain:g} s for {running} running{more}"
