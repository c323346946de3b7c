"""Writes a call as Python code, in pieces with a class each: names, text, numbers, hidden values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.model.jobs.payload import REDACTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST = 6_000  # characters that a page shows; the rest is counted
DEEPEST = 20  # levels that are shown


class Piece(NamedTuple):
    """Some text and its class: fn, kw, s, nb or none."""

    kind: str
    text: str


def pieces_of(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Piece]:
    """The call; a long one ends with how much is left out."""
    pieces: list[Piece] = []
    room = LONGEST
    for piece in _call(task, args, kwargs):
        if room <= 0:
            pieces.append(Piece("kw", " …"))
            break
        pieces.append(piece if len(piece.text) <= room else Piece(piece.kind, f"{piece.text[:room]}…"))
        room -= len(piece.text)
    return pieces


def _call(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Piece]:
    yield Piece("fn", task)
    yield Piece("", "(")
    for number, value in enumerate(args):
        if number:
            yield Piece("", ", ")
        yield from _value(value, 0)
    for number, (name, value) in enumerate(kwargs.items()):
        if number or args:
            yield Piece("", ", ")
        yield Piece("kw", f"{name}=")
        yield from _value(value, 0)
    yield Piece("", ")")


def _value(value: Any, depth: int) -> Iterator[Piece]:
    if value == REDACTED:
        yield Piece("kw", REDACTED)
    elif isinstance(value, str):
        yield Piece("s", repr(value))
    elif isinstance(value, (list, dict)) and depth >= DEEPEST:
        yield Piece("kw", "…")
    elif isinstance(value, list):
        yield from _items("[", "]", [(None, item) for item in value], depth)
    elif isinstance(value, dict):
        yield from _items("{", "}", list(value.items()), depth)
    else:
        yield Piece("nb", repr(value))


def _items(first: str, last: str, items: Sequence[tuple[Any, Any]], depth: int) -> Iterator[Piece]:
    yield Piece("", first)
    for number, (name, value) in enumerate(items):
        if number:
            yield Piece("", ", ")
        if name is not None:
            yield Piece("s", repr(name))
            yield Piece("", ": ")
        yield from _value(value, depth + 1)
    yield Piece("", last)
