"""Shows tracebacks: frames of libraries are folded, frames of the user's own code stand out."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line \d+')
_LIBRARY = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+[a-z]*)[/\\]"
    r"(?!site-packages|dist-packages)(?P<name>[^/\\]*)|^<frozen "
)
MOST_LINES = 400


class Block(Struct, frozen=True):
    """Lines of one kind: mine, lib (with the names of the libraries), error, or text."""

    kind: str
    text: str
    names: str = ""
    count: int = 0


def blocks_of(error: str) -> list[Block]:
    """A traceback in blocks; text that is none stays as it is."""
    lines = error.strip("\n").splitlines()[:MOST_LINES]
    if len(lines) > 1 and lines[1].startswith("Traceback"):
        lines = lines[1:]  # the first line repeats the last, for lists
    marked = list(_marked(lines))
    blocks: list[Block] = []
    for kind, group in groupby(marked, key=lambda pair: pair[0]):
        found = list(group)
        text = "\n".join(line for _, line, _ in found)
        names = list(dict.fromkeys(name for _, _, name in found if name))
        count = sum(_FRAME.match(line) is not None for _, line, _ in found)
        blocks.append(Block(kind, text, ", ".join(names[:4]), count))
    return blocks


def _marked(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each line with its kind and the library that it is of."""
    kind, name = "text", ""
    for number, line in enumerate(lines):
        frame = _FRAME.match(line)
        if frame:
            library = _LIBRARY.search(frame["file"])
            kind = "lib" if library else "mine"
            name = PurePath((library["name"] or "python") if library else "").stem
        elif not line.startswith("    ") and kind != "text":
            kind, name = "text", ""
        is_error = (
            kind == "text" and bool(line) and not line.startswith((" ", "Traceback")) and number == len(lines) - 1
        )
        yield ("error" if is_error else kind), line, name if kind == "lib" else ""
