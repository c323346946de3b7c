"""Store URLs: which store a text such as sqlite:///app.db names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from rota.errors import BadStoreUrl
from rota.model.secrets.masking import masked

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
CLIENTS = {  # the library of a client that a user has -> the module and the class of its store
    "redis": ("redis", "RedisStore"),
    "psycopg_pool": ("postgres", "PostgresStore"),
    "pymongo": ("mongo", "MongoStore"),
}


def store_from_url(url: str, *, namespace: str = "rota", folder: Path | None = None) -> Store:
    """The store that a URL names, not opened yet. Relative paths are taken from `folder`."""
    scheme = _scheme(url) if isinstance(url, str) else ""
    if scheme == "memory":
        from rota.store.memory import MemoryStore  # noqa: PLC0415 - a store is imported when it is chosen

        return MemoryStore()
    if scheme == "sqlite":
        return _sqlite(_sqlite_path(url, folder or Path.cwd()), namespace)
    if scheme in SERVERS:
        return _server(url, *SERVERS[scheme], namespace)
    raise BadStoreUrl(f"{masked(str(url))!r} names no store that this Rota has; use one of {', '.join(KINDS)}")


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError as err:
        raise BadStoreUrl(f"the store's URL cannot be read: {err}; check its host and its brackets") from err


def absolute(url: str, folder: Path) -> str:
    """The URL in a form that means the same in every folder."""
    if not url.startswith("sqlite:"):
        return url
    return f"sqlite:///{quote(str(_sqlite_path(url, folder).absolute()))}"


def url_of(store: Store) -> str:
    """The URL of a store in a file; what describes any other, whose URL may hold a password."""
    return store.describe() if store.path is None else f"sqlite:///{store.path}"


def store_from_client(client: object, *, namespace: str = "rota") -> Store:
    """The store on a client or pool that the caller has: it is used, and never closed."""
    for kind in type(client).__mro__:
        module = CLIENTS.get(kind.__module__.partition(".")[0])
        if module is not None:
            store: Store = import_module(f"rota.store.{module[0]}").__dict__[module[1]](client, namespace=namespace)
            return store
    raise BadStoreUrl(
        f"a {type(client).__qualname__} is no store; give a URL ({', '.join(KINDS)}), a client of redis-py or PyMongo, "
        "or a psycopg_pool.ConnectionPool"
    )


def default_store(folder: Path, *, namespace: str = "rota") -> Store:
    """The store of `App()`: a file in .rota, nothing to configure."""
    return _sqlite(folder / ".rota" / "rota.db", namespace)


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
