"""Finds the common cause of failures: which errors are the same but for their values.

Two errors have one cause if they are of one type, were raised in the same function of the user's code, and say the same
once ids, numbers and quoted values are left out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256

from msgspec import Struct

LONGEST_TITLE = 160
_FRAME = re.compile(r'^ +File "(?P<file>[^"\n]+)", line \d+, in (?P<function>.+)$', re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
# Libraries, and Python itself.
_FOREIGN = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python\d[^/\\]*)[/\\]|^<")
_FOLDERS = re.compile(r"[/\\]")
_TYPE = re.compile(r"^[A-Za-z_][\w.]*$")
_VALUES = (
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`"), "'…'"),  # the ' in "can't" opens nothing
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "<hex>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "N"),
)


class Cause(Struct, frozen=True, kw_only=True):
    """The common cause of several errors."""

    id: str  # short, and the same for the same cause in every process
    title: str  # ValueError: invalid literal for int() with base N: '…'
    place: str  # where it was raised: mail.py in send; empty if the error does not show it


@lru_cache(maxsize=1_000)
def cause_of(error: str) -> Cause:
    """The cause of a failure, from the error that is kept with the job: one line, then a traceback if there is one."""
    first, _, trace = error.partition("\n")
    kind, colon, message = first.partition(": ")
    title = f"{kind}: {_without_values(message)}" if colon and _TYPE.match(kind) else _without_values(first)
    place = _place(trace)
    digest = sha256(f"{title}\n{place}".encode(errors="replace")).hexdigest()
    return Cause(id=digest[:12], title=title[:LONGEST_TITLE], place=place)


def _without_values(message: str) -> str:
    for pattern, word in _VALUES:
        message = pattern.sub(word, message)
    return message.strip()


def _place(trace: str) -> str:
    """The innermost frame of the user's own code; of any code if none is. A line's number is left out: it changes with
    every edit above it."""
    frames = [(found["file"], found["function"]) for found in _FRAME.finditer(trace.rpartition(_TRACEBACK)[2])]
    own = [frame for frame in frames if not _FOREIGN.search(frame[0])]
    if not frames:
        return ""
    file, function = (own or frames)[-1]
    return f"{_FOLDERS.split(file)[-1]} in {function}"
