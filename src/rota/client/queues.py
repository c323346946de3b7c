"""app.queues: lines of jobs as callers see them, and the verbs about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.keywords import known_keywords_of_verbs
from rota.model.names import check_name
from rota.model.option_names import FOR_VERBS
from rota.operations.audit import Deed, add_deeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import QueueInfo, Store


@known_keywords_of_verbs("app.queues", FOR_VERBS)
class Queues:
    """app.queues"""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def list(self) -> list[QueueInfo]:
        """All queues that any job has been in, in numbers."""
        return self._store().list_queues()

    def get(self, name: str) -> QueueInfo | None:
        """The queue of that name; None where no job has been in it and nobody has paused it."""
        return next((queue for queue in self.list() if queue.name == name), None)

    def pause(self, name: str, *, by: str = "") -> None:
        """Let no worker take jobs from it; what runs goes on."""
        self._set(name, by, paused=True)

    def resume(self, name: str, *, by: str = "") -> None:
        """Let workers take jobs from it again."""
        self._set(name, by, paused=False)

    def _set(self, name: str, by: str, *, paused: bool) -> None:
        store = self._store()
        found = self.get(check_name("queue", name))
        was_paused = found is not None and found.is_paused
        store.pause_queue(name, paused=paused)
        if was_paused != paused:
            verb = "paused" if paused else "resumed"
            add_deeds(store, "queue", [Deed(name, verb, {"is_paused": was_paused}, {"is_paused": paused})], by)
