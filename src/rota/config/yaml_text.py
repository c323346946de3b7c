"""Reads rota.yaml as a tree of nodes with line numbers. Nothing in it is executed: no tag makes an object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 20  # bytes
SHALLOW = 100  # levels

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Unreadable(Exception):
    """The file as a whole; its text continues the file's name."""


def tree_of(path: Path) -> Any:
    """The root of the tree; None if the file is empty."""
    return _compose(_text_of(path))


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except IsADirectoryError as err:
        raise Unreadable(" is a folder; wanted a file of settings in YAML") from err
    except OSError as err:
        raise Unreadable(f" cannot be read: {err.strerror or err}") from err
    if len(data) > LARGEST:
        raise Unreadable(f" is larger than {LARGEST:,} bytes; wanted a file of settings in YAML")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise Unreadable(f":{line}: got bytes that are no UTF-8, wanted a text file of settings in YAML") from err
    odd = _CONTROL.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise Unreadable(f":{line}: got the character {odd.group()!r}, wanted a text file of settings in YAML")
    return text


def _compose(text: str) -> Any:
    import yaml  # noqa: PLC0415 - not needed without a file

    fast = getattr(yaml, "CSafeLoader", None)  # ten times as fast, if PyYAML was built with libyaml
    try:
        loader = fast if fast is not None and _is_shallow(text, fast) else yaml.SafeLoader
        return yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line = mark.line + 1 if mark else 1
        raise Unreadable(f":{line}: {_syntax_words(err, text, line)}") from err
    except yaml.YAMLError as err:
        raise Unreadable(f" is no YAML: {' '.join(str(err).split())}") from err
    except RecursionError as err:
        raise Unreadable(" is nested too deeply; wanted a file of settings in YAML") from err


def _is_shallow(text: str, loader: Any) -> bool:
    """Whether libyaml may read it: that ends the process if nesting is deep, and its error messages are worse."""
    import yaml  # noqa: PLC0415 - likewise

    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > SHALLOW:
                return False
    except yaml.YAMLError:
        return False
    return True


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
