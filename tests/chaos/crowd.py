"""A small crowd at work: schedulers, workers and somebody who enqueues, until told that it is enough."""

from __future__ import annotations

import signal

from kill_harness import wait_until

from amounts import amount
from rota import StoreUnavailable

PAUSE = amount(25, 0) / 1_000  # seconds between two jobs that are enqueued
ROLES = ["scheduler"] * 2 + ["worker"] * 3


class Crowd:
    """Processes on one ground."""

    def __init__(self, ground):
        self.ground = ground
        self.services = [ground.start(role) for role in ROLES]
        self._enqueuer = ground.start("enqueuer", count=100_000, pause=PAUSE)
        for service in self.services:
            service.wait_for("node.started")

    def go_on(self, runs=10):
        """Wait until so many more executions have begun: after a fault, that all is well again."""
        goal = len(self.ground.runs()) + runs
        wait_until(lambda: len(self.ground.runs()) >= goal, "executions")

    def look_again(self):
        """Wait until the test's own links have noticed that the server was away."""
        wait_until(lambda: all(_answers(self.ground.store) for _ in range(20)), "the server's answers")

    def have_said(self, text):
        return any(service.has_said(text) for service in self.services)

    def disperse(self):
        """No more jobs; every process ends in good order."""
        self.ground.open_gate("enough")
        assert self._enqueuer.end() == 0, self._enqueuer.output
        for service in self.services:
            service.signal(signal.SIGTERM)
        for service in self.services:
            assert service.end() == 0, service.output
            assert not service.has_said("service.failed"), service.output


def _answers(store):
    try:
        store.list_queues()
    except StoreUnavailable:
        return False
    return True
