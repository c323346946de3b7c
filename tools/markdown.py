"""Markdown as the reference pages write it."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def document(thing: Any) -> str:
    """What its docstring says; code in it stays code."""
    text = inspect.getdoc(thing) or ""
    return re.sub(r"(?:(?<=\n\n)|\A)((?:    .*(?:\n|\Z)|\n(?=    ))+)", _fenced, text).strip()


def sentence(thing: Any) -> str:
    """The first paragraph of its docstring, in one line."""
    return " ".join(inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].split())


def _fenced(found: re.Match[str]) -> str:
    return f"```py\n{inspect.cleandoc(found[1])}\n```\n"
