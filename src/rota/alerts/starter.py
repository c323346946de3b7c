"""Waits for the first alert rule that the store keeps, in a node whose app declares none.

Such a node loads none of the code that checks rules and sends messages. It reads the stored rules once a minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.engine.service import Service
from rota.model.alerts.stored_rule import RULE_KIND, unpack_rule
from rota.store.contract import LARGEST_PAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Events
    from rota.engine.store_clock import StoreClock
    from rota.store.contract import Store

LOOK_EVERY = 60.0  # seconds


class AlertStarter(Service):
    """Starts the alert watch when its app has a stored rule."""

    name = "alert watch"

    def __init__(
        self, store: Store, events: Events, clock: StoreClock, make_watch: Callable[[], Service], *, app: str
    ) -> None:
        super().__init__(events, clock)
        self._store = store
        self._app = app
        self._make_watch = make_watch
        self._watch: Service | None = None

    def turn(self) -> float:
        if self._watch is None:
            if not self._has_rules():
                return LOOK_EVERY
            self._watch = self._make_watch()
        return self._watch.turn()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def _has_rules(self) -> bool:
        entries = self._store.list_entries(RULE_KIND, limit=LARGEST_PAGE).items
        return any((rule := unpack_rule(entry.data)) is not None and rule.app == self._app for entry in entries)
