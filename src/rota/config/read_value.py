"""Reads one value of rota.yaml: a node read by its kind, or a complaint with the value and the wanted form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rota.config.nodes import is_list, kind_words, said
from rota.config.words import misfit
from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.config.kinds import Kind
    from rota.config.nodes import Walk


class Found(NamedTuple):
    """A value that was read."""

    value: Any


def read_value(walk: Walk, node: Any, path: str, kind: Kind) -> Found | None:
    """The value; None if a complaint was made instead."""
    if is_list(node):
        for _ in walk.items(node):
            pass  # each counts as a step
    words = said(node)
    if words is None or (isinstance(words, list) and not kind.wanted.startswith("a list")):
        walk.complain(node, path, misfit(kind_words(node), kind.wanted))
        return None
    try:
        return Found(kind.read(words))
    except RotaError as err:
        got = kind.shown(words if isinstance(words, str) else ", ".join(words)) if words else "an empty list"
        walk.complain(node, path, misfit(got, kind.wanted, err))
    return None
