"""Addresses: the pool of connections that a URL names, and what to call a server to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rota.errors import BadStoreUrl
from rota.model.secrets.masking import masked

if TYPE_CHECKING:
    from redis.cluster import RedisCluster

DEADLINE = 5.0  # seconds for a connection, and for an answer
FORMS = "redis://host:6379/0, rediss://…, valkey://…, or unix:///path/to/socket"
_SCHEMES = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss", "unix": "unix"}


def client_of(url: str) -> Redis:
    """A client of our own. It sends nothing twice by itself: whether a call may be repeated is for others to say."""
    options: dict[str, Any] = {
        "socket_timeout": DEADLINE,
        "socket_connect_timeout": DEADLINE,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,  # nothing that comes unasked
    }
    try:
        pool = ConnectionPool.from_url(_checked(url), **options)
        pool.connection_class(**pool.connection_kwargs)  # an option that it does not know shows itself here
    except (TypeError, ValueError) as err:
        raise BadStoreUrl(f"{masked(url)!r} cannot be used ({_reason(err)}); write {FORMS}") from err
    return Redis.from_pool(pool)


def address_of(client: Redis | RedisCluster) -> str:
    """Where a client's server is: no secrets."""
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        nodes: list[Any] = getattr(client, "get_primaries", list)()
        return f"redis cluster at {', '.join(f'{node.host}:{node.port}' for node in nodes) or 'unknown nodes'}"
    known = pool.connection_kwargs
    where = known.get("path") or f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"
    return f"redis at {where}, database {known.get('db', 0)}"


def _checked(url: str) -> str:
    """The URL in the driver's own form, if nothing in it would be ignored without a word."""
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None:
        raise ValueError(f"no such kind of address: {parts.scheme!r}")
    _ = parts.port  # raises if it is no number
    if scheme == "unix" and not parts.path.strip("/"):
        raise ValueError("a socket's path is missing")
    if scheme != "unix" and not parts.path.strip("/").isdecimal() and parts.path.strip("/"):
        raise ValueError("the database must be a number")
    if scheme != "unix" and not parts.hostname:
        raise ValueError("the host is missing")
    return f"{scheme}{url[len(parts.scheme) :]}"


def _reason(err: Exception) -> str:
    text = str(err)
    return text.partition(") ")[2] if "__init__" in text else text
