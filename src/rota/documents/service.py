"""Runs queues of documents together: beside a node, or alone. One that cannot start does not stop the others."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from rota.errors import RotaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.documents.catalogue import Catalogue
    from rota.documents.queue import DocumentQueue

log = logging.getLogger("rota.documents")

LOOK = 0.25  # seconds between two checks whether stop_now() was called


class QueueGroup:
    """Queues that start and stop together. A node has one as its companion."""

    def __init__(self) -> None:
        self.queues: list[DocumentQueue] = []  # those that were started here
        self._is_stopped_now = threading.Event()

    @property
    def running(self) -> int:
        """How many handlers run."""
        return sum(queue.processing for queue in self.queues)

    @property
    def is_healthy(self) -> bool:
        """Whether the loop of every queue turns."""
        return all(queue.is_turning for queue in self.queues)

    def start_all(self, queues: Sequence[DocumentQueue]) -> None:
        """Start them all, or none: if one refuses, those before it are stopped."""
        try:
            for queue in queues:
                queue.start()
                self.queues.append(queue)
        except BaseException:
            self.stop(0.0)
            raise

    def start_declared(self, catalogue: Catalogue) -> None:
        """Start all queues of an app. One that cannot start is logged with the reason, and the others run."""
        for name in catalogue.names:
            try:
                queue = catalogue.queue(name)
                if queue.is_running:  # its own code has started it
                    continue
                queue.start()
            except Exception as err:  # noqa: BLE001 - whatever a handler's module or a hook raises
                log.error(  # noqa: TRY400 - the sentence says what to mend
                    "the queue of documents %s does not run: %s; mend it, and see `rota documents check %s`",
                    name, _sentence(err), name,
                )  # fmt: skip
            else:
                self.queues.append(queue)
        if self.queues:
            log.info("running the queues of documents %s", ", ".join(queue.name for queue in self.queues))

    def ask_to_stop(self) -> None:
        """Lock nothing more. Returns at once."""
        for queue in self.queues:
            queue.ask_to_stop()

    def stop(self, seconds: float) -> None:
        """Lock nothing more, and wait for handlers for so many seconds, or until `stop_now`."""
        self.ask_to_stop()
        ends_at = time.monotonic() + seconds
        for queue in self.queues:
            while not self._is_stopped_now.is_set() and (left := ends_at - time.monotonic()) > 0:
                if queue.wait(min(left, LOOK)):
                    break
            if queue.is_running:
                log.warning("%s: handlers still run; their documents are taken up when their locks end", queue.name)

    def stop_now(self) -> None:
        """End the wait of `stop`."""
        self._is_stopped_now.set()


def _sentence(err: Exception) -> str:
    return str(err) if isinstance(err, RotaError) else f"{type(err).__name__}: {err}"
