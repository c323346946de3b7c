"""rota.yaml: read as text with line numbers, so that every complaint names its line. Nothing in it is ever executed.

Values are composed, not constructed: no tag makes an object, and aliases are followed only where a setting can be.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rota.config.layers import Layer, Origin, Reading, Value
from rota.config.settings import KEYS, PARTS
from rota.config.words import meant, misfit, shown_path
from rota.errors import RotaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rota.config.settings import Key

LARGEST = 1 << 20  # bytes
LATER = {  # what files will say one day, and how to say it today
    "schedules": "this Rota reads no schedules from files yet; declare them with @app.schedule, or at run time with "
    "app.schedules.put(…)",
    "tenants": "this Rota has no tenants yet; name a timezone for each schedule with tz=",
    "sources": "this Rota reads no sources from files yet; write a task for each, with @app.schedule",
}

_STANDARD = "tag:yaml.org,2002:"
_PLAIN = {f"{_STANDARD}{tag}" for tag in ("str", "int", "float", "bool", "timestamp", "value", "null")}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_file(path: Path) -> Reading:
    """What the file says, and everything that is wrong with it."""
    place = shown_path(path)
    try:
        text = _text_of(path)
        root = _compose(text)
    except _Unreadable as err:
        return Reading({}, [f"{place}{err}"])
    if root is None:
        return Reading({}, [])
    reader = _Reader(path, place)
    reader.read(root)
    return Reading(reader.layer, reader.complaints)


class _Unreadable(Exception):
    """The file as a whole; its text continues the file's name."""


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except IsADirectoryError as err:
        raise _Unreadable(" is a folder; wanted a file of settings in YAML") from err
    except OSError as err:
        raise _Unreadable(f" cannot be read: {err.strerror or err}") from err
    if len(data) > LARGEST:
        raise _Unreadable(f" is larger than {LARGEST:,} bytes; wanted a file of settings in YAML")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise _Unreadable(f":{line}: got bytes that are no UTF-8, wanted a text file of settings in YAML") from err
    odd = _CONTROL.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise _Unreadable(f":{line}: got the character {odd.group()!r}, wanted a text file of settings in YAML")
    return text


def _compose(text: str) -> Any:
    """The tree of nodes; None for a file that says nothing."""
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 - only who has a file pays for it

    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line = mark.line + 1 if mark else 1
        raise _Unreadable(f":{line}: {_syntax_words(err, text, line)}") from err
    except yaml.YAMLError as err:
        raise _Unreadable(f" is no YAML: {' '.join(str(err).split())}") from err
    except RecursionError as err:
        raise _Unreadable(" is nested too deeply; wanted a file of settings in YAML") from err


def _syntax_words(err: Any, text: str, line: int) -> str:
    lines = text.splitlines()
    indent = re.match(r"\s*", lines[line - 1] if line <= len(lines) else "")
    if indent and "\t" in indent.group():
        return "got a tab at the line's beginning, wanted spaces: YAML has no tabs there"
    if "document" in str(err.problem) or "document" in str(err.context):
        return "got a second document, wanted one: take the line --- out"
    if "mapping values" in str(err.problem):
        return "got a colon where none can stand: look for one that is missing in the line before, or quote the text"
    return f"is no YAML here: {err.problem or err.context}"


class _Reader:
    """Walks the nodes; collects values and complaints."""

    def __init__(self, path: Path, place: str) -> None:
        self.layer: Layer = {}
        self.complaints: list[str] = []
        self._folder = path.absolute().parent
        self._place = place

    def read(self, root: Any) -> None:
        if _is_null(root):
            return
        if not _is_mapping(root):
            self._complain(root, "", misfit(_kind_words(root), "settings such as `store: sqlite:///jobs.db`"))
            return
        for name, key_node, node in self._pairs(root, ""):
            if name in PARTS:
                self._read_part(name, node)
            elif name in KEYS:
                self._read_key(KEYS[name], node)
            else:
                self._complain(key_node, name, _unknown(name, ""))

    def _read_part(self, part: str, node: Any) -> None:
        if _is_null(node):
            return  # everything in it is commented out
        if not _is_mapping(node):
            example = next(key for path, key in KEYS.items() if path.startswith(f"{part}."))
            name = example.path.partition(".")[2]
            self._complain(node, part, misfit(_kind_words(node), f"settings below it, such as `{name}: …`"))
            return
        for name, key_node, inner in self._pairs(node, f"{part}."):
            path = f"{part}.{name}"
            if path in KEYS:
                self._read_key(KEYS[path], inner)
            else:
                self._complain(key_node, path, _unknown(name, f"{part}."))

    def _read_key(self, key: Key, node: Any) -> None:
        origin = Origin("file", f"{self._place}:{node.start_mark.line + 1}", self._folder)
        if _is_null(node) and key.default is None:
            self.layer[key.path] = Value(None, origin)
            return
        said = _said(node)
        if said is None or (isinstance(said, list) and not key.kind.wanted.startswith("a list")):
            self._complain(node, key.path, misfit(_kind_words(node), key.kind.wanted))
            return
        try:
            self.layer[key.path] = Value(key.kind.read(said), origin)
        except RotaError as err:
            got = key.kind.shown(said if isinstance(said, str) else ", ".join(said)) if said else "an empty list"
            self._complain(node, key.path, misfit(got, key.kind.wanted, err))

    def _pairs(self, mapping: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
        """Names with their nodes; one that is said twice is a complaint, as is one that is no name."""
        seen: dict[str, int] = {}
        for key_node, node in mapping.value:
            name = _said(key_node)
            line = key_node.start_mark.line + 1
            if not isinstance(name, str):
                self._complain(key_node, "", misfit(_kind_words(key_node), "the name of a setting"))
            elif name in seen:
                self._complain(key_node, prefix + name, f"is said twice, first in line {seen[name]}; keep one of them")
            else:
                seen[name] = line
                yield name, key_node, node

    def _complain(self, node: Any, path: str, what: str) -> None:
        named = f"{path}: " if path else ""
        self.complaints.append(f"{self._place}:{node.start_mark.line + 1}: {named}{what}")


def _said(node: Any) -> str | list[str] | None:
    """The text of a scalar, or the texts of a list; None for anything else."""
    if node.id == "scalar" and node.tag in _PLAIN and not _is_null(node):
        return str(node.value)
    if node.id == "sequence":
        items = [_said(item) if item.id == "scalar" else None for item in node.value]
        return (
            [item for item in items if isinstance(item, str)] if all(isinstance(item, str) for item in items) else None
        )
    return None


def _unknown(name: str, prefix: str) -> str:
    if not prefix and name in LATER:
        return LATER[name]
    here = [path.removeprefix(prefix) for path in KEYS if path.startswith(prefix)]
    names = [word for word in here if "." not in word] + ([] if prefix else list(PARTS))
    elsewhere = next((path for path in KEYS if path.rpartition(".")[2] == name), None)
    close = meant(name, names)
    if elsewhere or close:
        return f"there is no such setting; did you mean {elsewhere or prefix + str(close)}?"
    return f"there is no such setting; there are {', '.join(sorted(prefix + word for word in names))}"


def _is_mapping(node: Any) -> bool:
    return bool(node.id == "mapping")


def _is_null(node: Any) -> bool:
    return bool(node.id == "scalar" and node.tag == f"{_STANDARD}null")


def _kind_words(node: Any) -> str:
    """What a node is, in words."""
    if _is_null(node):
        return "nothing"
    usual = {"mapping": {f"{_STANDARD}map"}, "sequence": {f"{_STANDARD}seq"}}.get(node.id, _PLAIN)
    if node.tag not in usual:
        return f"the tag {node.tag.replace(_STANDARD, '!!')}"
    if node.id == "scalar":
        text = node.value if len(node.value) <= 60 else f"{node.value[:57]}..."
        return repr(text)
    if node.id == "mapping":
        return "a mapping"
    return "a list" if all(item.id == "scalar" for item in node.value) else "a list within a list"
