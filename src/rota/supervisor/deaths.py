"""Keeps how workers died until a living worker has recorded it in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.supervisor.worker_process import WorkerProcess


class Deaths:
    """The parent knows how a worker ended, and has no store. So it sends that to a worker, which has one."""

    def __init__(self) -> None:
        self._causes: dict[str, str] = {}  # by node
        self._sent_to: dict[str, int] = {}  # by node, the worker that was asked to record it

    def __iter__(self) -> Iterator[str]:
        return iter(self._causes)

    def add(self, node: str, cause: str) -> None:
        self._causes[node] = cause

    def deliver(self, workers: Iterable[WorkerProcess]) -> None:
        """Send each death to a worker that is up, if possible to one that does not drain."""
        waiting = [node for node in self._causes if node not in self._sent_to]
        able = [worker for worker in workers if worker.is_up and not worker.killed_for]
        able.sort(key=lambda worker: worker.is_leaving)
        for node in waiting if able else []:
            if able[0].send(died=node, how=self._causes[node]):
                self._sent_to[node] = able[0].pid

    def forget(self, node: str) -> None:
        """A worker has recorded it."""
        self._causes.pop(node, None)
        self._sent_to.pop(node, None)

    def worker_ended(self, pid: int) -> None:
        """This worker has ended. What it has not recorded is sent to another."""
        self._sent_to = {node: sent_to for node, sent_to in self._sent_to.items() if sent_to != pid}
