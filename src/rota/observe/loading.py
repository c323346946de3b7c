"""Imports the extra that metrics need on their first use, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.engine.events import Events
    from rota.engine.node import Node
    from rota.observe.metrics import Metrics
    from rota.store.contract import Store


def load_metrics(store: Callable[[], Store], events: Events, node: Callable[[], Node | None]) -> Metrics:
    """The metrics of one app."""
    try:
        from rota.observe.metrics import Metrics  # noqa: PLC0415 - not needed without metrics
    except ModuleNotFoundError as err:
        if err.name is None or not err.name.startswith("prometheus"):
            raise
        raise BadOption(
            f"metrics need the package {err.name!r}, which is not installed; install rota[metrics]"
        ) from err
    return Metrics(store, events, node)
