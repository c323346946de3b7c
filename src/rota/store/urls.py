"""Store URLs: which store a text such as sqlite:///app.db names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rota.errors import BadStoreUrl

if TYPE_CHECKING:
    from rota.store.contract import Store

KINDS = ("sqlite:///file.db", "redis://host", "postgresql://host/database", "mongodb://host", "memory://")
SERVERS = {  # scheme -> the module of its store, and the extra that brings its driver
    "redis": ("redis", "redis"),
    "rediss": ("redis", "redis"),
    "valkey": ("redis", "redis"),
    "valkeys": ("redis", "redis"),
    "unix": ("redis", "redis"),
    "postgresql": ("postgres", "postgres"),
    "postgres": ("postgres", "postgres"),
    "mongodb": ("mongo", "mongo"),
    "mongodb+srv": ("mongo", "mongo"),
}


def store_from_url(url: str, *, namespace: str = "rota", folder: Path | None = None) -> Store:
    """The store that a URL names, not opened yet. Relative paths are taken from `folder`."""
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    if scheme == "memory":
        from rota.store.memory import MemoryStore  # noqa: PLC0415 - a store is imported when it is chosen

        return MemoryStore()
    if scheme == "sqlite":
        return _sqlite(_sqlite_path(url, folder or Path.cwd()), namespace)
    if scheme in SERVERS:
        return _server(url, *SERVERS[scheme], namespace)
    raise BadStoreUrl(f"{masked(str(url))!r} names no store that this Rota has; use one of {', '.join(KINDS)}")


def default_store(folder: Path, *, namespace: str = "rota") -> Store:
    """The store of `App()`: a file in .rota, nothing to configure."""
    return _sqlite(folder / ".rota" / "rota.db", namespace)


def masked(url: str) -> str:
    """The URL without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@")


def _server(url: str, module: str, extra: str, namespace: str) -> Store:
    try:
        chosen = import_module(f"rota.store.{module}")
    except ModuleNotFoundError as err:
        if err.name is not None and err.name.startswith("rota"):
            raise
        raise BadStoreUrl(
            f"{masked(url)!r} needs the package {err.name!r}, which is not installed; install rota[{extra}]"
        ) from err
    store: Store = chosen.from_url(url, namespace=namespace)
    return store


def _sqlite(path: Path, namespace: str) -> Store:
    from rota.store.sqlite import SqliteStore  # noqa: PLC0415 - a store is imported when it is chosen

    return SqliteStore(path, namespace=namespace)


def _sqlite_path(url: str, folder: Path) -> Path:
    rest = url.removeprefix("sqlite:")
    if not rest.startswith("///") or len(rest) == 3:
        raise BadStoreUrl(
            f"{url!r}: write sqlite:///file.db for a file in this folder, or sqlite:////path/to/file.db for any other"
        )
    return folder / Path(unquote(rest[3:])).expanduser()
