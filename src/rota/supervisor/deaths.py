"""Keeps what is known of dead workers until a living worker has recorded it in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.supervisor.worker_process import WorkerProcess


class Deaths:
    """The parent knows how a worker ended, and has no store. A worker has one, so the parent sends it the news."""

    def __init__(self) -> None:
        self._stories: dict[str, str] = {}  # by node
        self._carriers: dict[str, int] = {}  # the worker that the news was sent to, by node

    def __iter__(self) -> Iterator[str]:
        return iter(self._stories)

    def add(self, node: str, story: str) -> None:
        self._stories[node] = story

    def deliver(self, workers: Iterable[WorkerProcess]) -> None:
        """Send each death to a worker that is up, preferably one that stays; again if it ends before it records it."""
        waiting = [node for node in self._stories if node not in self._carriers]
        able = sorted((worker for worker in workers if worker.is_up and not worker.fate), key=lambda w: w.is_leaving)
        for node in waiting if able else []:
            if able[0].send(died=node, how=self._stories[node]):
                self._carriers[node] = able[0].pid

    def forget(self, node: str) -> None:
        """The store knows."""
        self._stories.pop(node, None)
        self._carriers.pop(node, None)

    def take_back(self, pid: int) -> None:
        """This worker has ended: another gets what it had not recorded."""
        self._carriers = {node: carrier for node, carrier in self._carriers.items() if carrier != pid}
