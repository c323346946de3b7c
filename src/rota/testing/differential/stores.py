"""Stores for a differential test: fresh and empty ones, by name or by URL."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rota.model.secrets.masking import masked
from rota.store.urls import store_from_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rota.store.contract import Store

YARDSTICK = "memory"  # what all are compared with


@contextmanager
def fresh_stores(names: Sequence[str]) -> Iterator[dict[str, Store]]:
    """Open stores with nothing in them: `sqlite` on a file that goes, URLs under a namespace that nobody has."""
    with ExitStack() as stack:
        stores: dict[str, Store] = {}
        for name in names:
            store = _fresh(name, stack)
            store.open()
            stack.callback(store.close)
            stores[masked(name)] = store
        yield stores


def _fresh(name: str, stack: ExitStack) -> Store:
    if name == "memory":
        return store_from_url("memory://")
    if name == "sqlite":
        folder = Path(stack.enter_context(TemporaryDirectory()))
        return store_from_url("sqlite:///diff.db", folder=folder)
    return store_from_url(name, namespace=f"diff_{secrets.token_hex(4)}")
