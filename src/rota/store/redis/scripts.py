"""Loads the Lua scripts of this package, and computes the digests by which the server knows them."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib import resources
from typing import NamedTuple

ALONE = {"add_one"}  # scripts without the prelude
SHARED = {
    "guarded": {"commit", "exchange"},
    "accept": {"add", "fire"},
    "queue_names": {"list", "count", "queues"},
    "sources": {"list", "count"},
}  # parts, and the scripts that use them


class Script(NamedTuple):
    """A script, and the digest by which the server knows it."""

    name: str
    source: str
    digest: str


@cache
def script(name: str) -> Script:
    """A script by the name of its file."""
    source = "".join(map(_text, _parts(name)))
    return Script(name, source, sha1(source.encode(), usedforsecurity=False).hexdigest())


def _parts(name: str) -> list[str]:
    if name in ALONE:
        return [name]
    return ["prelude", *(part for part, users in SHARED.items() if name in users), name]


def _text(name: str) -> str:
    return (resources.files(__package__) / "lua" / f"{name}.lua").read_text(encoding="utf-8")
