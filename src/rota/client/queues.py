"""Defines app.queues: queues of jobs as callers see them, and the verbs about them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.inspector.facts.values import filled
from rota.keywords import known_keywords_of_verbs
from rota.model.micros import optional_datetime
from rota.model.names import check_name
from rota.model.option_names import FOR_VERBS
from rota.operations.audit import AuditedChange, add_audit_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Store


class QueueView(Struct, frozen=True, kw_only=True):
    """A queue in numbers, as it was when it was read."""

    name: str
    is_paused: bool = False
    counts: dict[str, int] = {}  # stored jobs, by state
    totals: dict[str, int] = {}  # jobs that ever ended, by state
    oldest_at: datetime | None = None  # since when the first job, of any priority, has been waiting


@known_keywords_of_verbs("app.queues", FOR_VERBS)
class Queues:
    """app.queues"""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def list(self) -> list[QueueView]:
        """All queues that any job has been in, in numbers."""
        found = self._store().list_queues()
        return [filled(QueueView, queue, oldest_at=optional_datetime(queue.oldest_at)) for queue in found]

    def get(self, name: str) -> QueueView | None:
        """The queue of that name; None if no job has been in it and it was never paused."""
        return next((queue for queue in self.list() if queue.name == name), None)

    def pause(self, name: str, *, reason: str = "", by: str = "") -> None:
        """Let no worker claim jobs from it; running jobs continue. The reason is stored in an audit record."""
        self._set(name, by, reason, paused=True)

    def resume(self, name: str, *, by: str = "") -> None:
        """Let workers claim jobs from it again."""
        self._set(name, by, "", paused=False)

    def _set(self, name: str, by: str, reason: str, *, paused: bool) -> None:
        store = self._store()
        found = self.get(check_name("queue", name))
        was_paused = found is not None and found.is_paused
        store.pause_queue(name, paused=paused)
        if was_paused != paused or reason:  # another reason for a queue that is paused already counts
            verb = "paused" if paused else "resumed"
            after = {"is_paused": paused, **({"reason": reason} if reason else {})}
            add_audit_records(store, "queue", [AuditedChange(name, verb, {"is_paused": was_paused}, after)], by)
