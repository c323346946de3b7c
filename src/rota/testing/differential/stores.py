"""Opens fresh, empty stores for a differential test, by name or by URL."""

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

REFERENCE = "memory"  # the store that all others are compared with


@contextmanager
def fresh_stores(names: Sequence[str]) -> Iterator[dict[str, Store]]:
    """Open empty stores: `sqlite` on a file that is deleted afterwards, URLs under a new namespace."""
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
