"""Reads rota.yaml: settings and declarations, with line numbers, so that every complaint names its line.

Values are composed, not constructed: no tag makes an object, and `no` stays a name.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rota.config.layers import Layer, Origin, Reading, Value
from rota.config.nodes import TooMuch, Walk, is_mapping, is_null, kind_words
from rota.config.read_declared import PARTS as DECLARED
from rota.config.read_declared import DeclarationReader
from rota.config.read_value import read_value
from rota.config.settings import KEYS, PARTS
from rota.config.words import meant, misfit, shown_path
from rota.config.yaml_text import Unreadable, tree_of

if TYPE_CHECKING:
    from pathlib import Path

    from rota.config.settings import Key


def read_file(path: Path) -> Reading:
    """The content of the file, and all complaints about it."""
    place = shown_path(path)
    try:
        root = tree_of(path)
    except Unreadable as err:
        return Reading({}, [f"{place}{err}"])
    if root is None:
        return Reading({}, [])
    reader = _Reader(path, Walk(place))
    with suppress(TooMuch):  # it is among the complaints
        reader.read(root)
    return Reading(reader.layer, reader.walk.complaints, reader.declared.found())


class _Reader:
    """Walks the nodes; collects values and complaints."""

    def __init__(self, path: Path, walk: Walk) -> None:
        self.layer: Layer = {}
        self.walk = walk
        self.declared = DeclarationReader(walk)
        self._folder = path.absolute().parent

    def read(self, root: Any) -> None:
        if is_null(root):
            return
        if not is_mapping(root):
            self.walk.complain(root, "", misfit(kind_words(root), "settings such as `store: sqlite:///jobs.db`"))
            return
        for name, key_node, node in self.walk.pairs(root, ""):
            if name in PARTS:
                self._read_part(name, node)
            elif name in DECLARED:
                self.declared.read(name, node)
            elif name in KEYS:
                self._read_key(KEYS[name], node)
            else:
                self.walk.complain(key_node, name, _unknown(name, ""))

    def _read_part(self, part: str, node: Any) -> None:
        if is_null(node):
            return  # everything in it is commented out
        if not is_mapping(node):
            example = next(key for path, key in KEYS.items() if path.startswith(f"{part}."))
            name = example.path.partition(".")[2]
            self.walk.complain(node, part, misfit(kind_words(node), f"settings below it, such as `{name}: …`"))
            return
        for name, key_node, inner in self.walk.pairs(node, f"{part}."):
            path = f"{part}.{name}"
            if path in KEYS:
                self._read_key(KEYS[path], inner)
            else:
                self.walk.complain(key_node, path, _unknown(name, f"{part}."))

    def _read_key(self, key: Key, node: Any) -> None:
        origin = Origin("file", self.walk.at(node), self._folder)
        if is_null(node) and key.default is None:
            self.layer[key.path] = Value(None, origin)
            return
        found = read_value(self.walk, node, key.path, key.kind)
        if found is not None:
            self.layer[key.path] = Value(found.value, origin)


def _unknown(name: str, prefix: str) -> str:
    here = [path.removeprefix(prefix) for path in KEYS if path.startswith(prefix)]
    names = [word for word in here if "." not in word] + ([] if prefix else [*PARTS, *DECLARED])
    elsewhere = next((path for path in KEYS if path.rpartition(".")[2] == name), None)
    close = meant(name, names)
    if elsewhere or close:
        return f"there is no such setting; did you mean {elsewhere or prefix + str(close)}?"
    return f"there is no such setting; there are {', '.join(sorted(prefix + word for word in names))}"
