"""Deaths: what is known of workers that died, until a living one has told the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rota.supervisor.worker_process import WorkerProcess


class Deaths:
    """The parent knows how a worker ended, and has no store; a worker has one, and is told."""

    def __init__(self) -> None:
        self._stories: dict[str, str] = {}  # by node
        self._carriers: dict[str, int] = {}  # the worker that was told, by node

    def __iter__(self) -> Iterator[str]:
        return iter(self._stories)

    def add(self, node: str, story: str) -> None:
        self._stories[node] = story

    def deliver(self, workers: Iterable[WorkerProcess]) -> None:
        """Tell a worker that is up, best one that stays; once, unless it ends before it has passed it on."""
        waiting = [node for node in self._stories if node not in self._carriers]
        able = sorted((worker for worker in workers if worker.is_up and not worker.fate), key=lambda w: w.is_leaving)
        for node in waiting if able else []:
            if able[0].tell(died=node, how=self._stories[node]):
                self._carriers[node] = able[0].pid

    def forget(self, node: str) -> None:
        """The store knows."""
        self._stories.pop(node, None)
        self._carriers.pop(node, None)

    def take_back(self, pid: int) -> None:
        """This worker has ended: another gets what it had not passed on."""
        self._carriers = {node: carrier for node, carrier in self._carriers.items() if carrier != pid}
