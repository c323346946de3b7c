"""Every public error stands in the tree that errors.py draws, below its parent, and on the page about errors."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import rota
from rota import errors

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
PAGE = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text("utf-8")


def drawn() -> dict[str, str | None]:
    """Each name of the tree, and the name above it."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"^([│ ]*(?:[├└]── )?)([A-Z]\w+)(?:$| +\(| {2,})", line):
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            parents[found[2]] = path[depth - 1] if depth else None
    return parents


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_stands_in_the_tree_and_on_the_page(kind):
    tree = drawn()
    parent = next((base for base in kind.__bases__ if base in CLASSES), None)
    assert kind.__name__ in tree
    assert tree[kind.__name__] == (parent.__name__ if parent else None)
    assert f"| `{kind.__name__}` |" in PAGE


def test_the_tree_has_nothing_else_and_what_rota_exports_is_in_it():
    names = {kind.__name__ for kind in CLASSES}
    assert set(drawn()) == names
    exported = [getattr(rota, name) for name in rota.__all__ if inspect.isclass(getattr(rota, name))]
    assert {kind.__name__ for kind in exported if issubclass(kind, errors.RotaError)} <= names
    assert rota.BadResult in exported
