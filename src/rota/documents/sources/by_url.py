"""Opens a source by its URL. A further kind of source is one row of `OPENERS`."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from rota.errors import BadOption, RotaError
from rota.model.secrets.masking import masked
from rota.store.urls import absolute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rota.documents.contract import Source
    from rota.documents.fields import Fields


# A driver takes such a password for a port or a database, and quotes it in its errors.
_UNESCAPED = re.compile(r"//[^:@/?#]*:(?!\d+(?:[/,?#]|$))[^@/?#]*[/?#].*@")


class Wanted(NamedTuple):
    """Which documents are wanted, and where they keep their schedule."""

    url: str
    collection: str
    fields: Fields
    condition: Mapping[str, Any] | None
    kind: Mapping[str, str]  # options of this kind of source: key, times
    folder: Path  # where relative paths start


def open_source(wanted: Wanted) -> Source[Any]:
    """The source of a URL. BadOption if no kind has this scheme or a driver is missing."""
    scheme = wanted.url.partition("://")[0]
    opener = OPENERS.get(scheme)
    if opener is None:
        raise BadOption(f"no source of documents has the scheme {scheme!r}; there are {', '.join(sorted(OPENERS))}")
    if scheme != "sqlite" and _UNESCAPED.search(wanted.url):
        raise BadOption(
            f"the password in {masked(wanted.url)} holds a '/', '?' or '#'; write these as %2F, %3F and %23"
        )
    try:
        return opener(wanted)
    except RotaError:
        raise
    except ValueError as err:
        raise BadOption(f"{masked(wanted.url)} cannot be read: {err}") from err
    except ModuleNotFoundError as err:
        if (err.name or "").startswith("rota"):
            raise
        extra = EXTRAS.get(scheme, scheme)
        raise BadOption(f'{scheme}:// needs a driver that is not installed: pip install "rota[{extra}]"') from err


def _open_mongo(wanted: Wanted) -> Source[Any]:
    return _made("mongo.by_url", "OwnMongoSource", wanted, wanted.url)


def _open_postgres(wanted: Wanted) -> Source[Any]:
    return _made("postgres", "PostgresSource", wanted, wanted.url, "key")


def _open_redis(wanted: Wanted) -> Source[Any]:
    return _made("redis", "RedisSource", wanted, wanted.url, "key")


def _open_sqlite(wanted: Wanted) -> Source[Any]:
    path = unquote(absolute(wanted.url, wanted.folder).removeprefix("sqlite:///"))
    return _made("sqlite", "SqliteSource", wanted, path, "key", "times")


def _made(module: str, name: str, wanted: Wanted, place: str, *known: str) -> Source[Any]:
    """A source of the class in a module that is loaded when it is needed; `known` are the options of this kind."""
    for key in wanted.kind:
        if key not in known:
            raise BadOption(f"`{key}` is no option of {masked(wanted.url).partition(':')[0]} sources; leave it out")
    make = getattr(import_module(f"rota.documents.sources.{module}"), name)
    made: Source[Any] = make(place, wanted.collection, fields=wanted.fields, condition=wanted.condition, **wanted.kind)
    return made


OPENERS: dict[str, Callable[[Wanted], Source[Any]]] = {
    "mongodb": _open_mongo,
    "mongodb+srv": _open_mongo,
    "postgres": _open_postgres,
    "postgresql": _open_postgres,
    "redis": _open_redis,
    "rediss": _open_redis,
    "sqlite": _open_sqlite,
}
EXTRAS = {  # what pip is asked for, if it is not the scheme
    "mongodb": "mongo",
    "mongodb+srv": "mongo",
    "postgresql": "postgres",
    "rediss": "redis",
}


def shown_url(url: str) -> str:
    """A URL without its secrets."""
    return masked(url)
