"""Reads the tasks of the nodes that run now, to refuse a name that none of them has."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rota.config.words import meant
from rota.errors import UnknownTask
from rota.store.shared.liveness import live_nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Store

FRESH = 2.0  # seconds for which names are not read again because one is missing


class LiveTasks:
    """The names of all tasks that live workers have registered; None if no worker is alive."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._names: frozenset[str] | None = None
        self._read_at = float("-inf")

    def check(self, name: str) -> None:
        """Refuse a name that no live worker has. If none is alive, nothing is known, and every name is accepted."""
        if self._names is not None and name in self._names:
            return
        if time.monotonic() >= self._read_at + FRESH:
            self._names, self._read_at = self._read(), time.monotonic()
        if self._names is None or name in self._names:
            return
        ending = [known for known in sorted(self._names) if known.endswith(f".{name}")]
        close = " or ".join(ending) or meant(name, self._names)
        fix = f"did you mean {close}?" if close else "start a worker that has it."
        raise UnknownTask(
            f"no live worker has a task named '{name}'; {fix} To enqueue it before its worker starts, declare a stub: "
            f"@app.task(name='{name}')"
        )

    def _read(self) -> frozenset[str] | None:
        store = self._store()
        workers = [node for node in live_nodes(store.list_nodes(), store.now()) if "worker" in node.roles]
        if not workers or any(node.problem for node in workers):
            return None
        return frozenset(name for node in workers for name in node.tasks)
