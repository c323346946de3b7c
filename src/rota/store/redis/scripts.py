"""Loads the Lua scripts of this package, and computes the digests by which the server knows them."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib import resources
from typing import NamedTuple

from rota.store.redis.schema import VERSION

COMMON = ("prelude", "request")  # what most scripts begin with
PARTS = {
    "add_one": ("prelude",),
    "add": (*COMMON, "guarded"),
    "commit": (*COMMON, "guarded"),
    "exchange": (*COMMON, "guarded"),
    "queues": (*COMMON, "queue_names"),
    "list": (*COMMON, "queue_names", "sources"),
    "count": (*COMMON, "queue_names", "sources"),
}  # what the others begin with


class Script(NamedTuple):
    """A script, and the digest by which the server knows it."""

    source: str
    digest: str


@cache
def script(name: str) -> Script:
    """A script by the name of its file."""
    source = "".join(map(_text, (*PARTS.get(name, COMMON), name))).replace("$VERSION", VERSION)
    return Script(source, sha1(source.encode(), usedforsecurity=False).hexdigest())


def _text(name: str) -> str:
    return (resources.files(__package__) / "lua" / f"{name}.lua").read_text(encoding="utf-8")
