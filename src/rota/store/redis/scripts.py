"""The Lua scripts of this package: read once, told to the server by their digest."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib import resources
from typing import NamedTuple

ALONE = {"add_one"}  # scripts that bring all that they need
KEEPING = {"commit", "entries"}  # those that keep notes


class Script(NamedTuple):
    """One transition: what it does, and the name that the server knows it by."""

    name: str
    source: str
    digest: str


@cache
def script(name: str) -> Script:
    """A script by the name of its file."""
    parts = [name] if name in ALONE else ["prelude", *(["keeping"] if name in KEEPING else []), name]
    source = "".join(map(_text, parts))
    return Script(name, source, sha1(source.encode(), usedforsecurity=False).hexdigest())


def _text(name: str) -> str:
    return (resources.files(__package__) / "lua" / f"{name}.lua").read_text(encoding="utf-8")
