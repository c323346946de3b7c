"""Reads arguments in rota.yaml as JSON values. A text that one reader of YAML takes for text and another for a
number or a boolean (no, 010, 1_000) is refused; the error shows how to write each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rota.config.nodes import PLAIN, STANDARD, is_list, is_mapping, is_null, kind_words
from rota.config.words import misfit
from rota.model.jobs.payload import DEEPEST

if TYPE_CHECKING:
    from rota.config.nodes import Walk

WANTED = "text, a number, true, false, null, a list or a mapping"
LONGEST_NUMBER = 30  # characters; a longer text is not a number

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class NoValue(Exception):
    """A complaint was made."""


def json_value(walk: Walk, node: Any, path: str, depth: int = 0) -> Any:
    """The value of a node; NoValue if it has none."""
    if depth > DEEPEST:
        walk.complain(node, path[:100], f"is nested deeper than {DEEPEST} levels")
        raise NoValue
    if is_list(node):
        return [json_value(walk, item, f"{path}[{index}]", depth + 1) for index, item in enumerate(walk.items(node))]
    if is_mapping(node):
        pairs = walk.pairs(node, f"{path}.", "a name")
        return {name: json_value(walk, inner, f"{path}.{name}", depth + 1) for name, _, inner in pairs}
    if node.id != "scalar" or node.tag not in PLAIN:
        walk.complain(node, path, misfit(kind_words(node), WANTED))
        raise NoValue
    return None if is_null(node) else _scalar(walk, node, path)


def _scalar(walk: Walk, node: Any, path: str) -> Any:
    text: str = node.value
    if node.style:  # quoted, or a block: text, whatever it looks like
        return text
    if text in _TRUTHS:
        return _TRUTHS[text]
    if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text):
        return int(text) if _WHOLE.fullmatch(text) else float(text)
    kind = node.tag.removeprefix(STANDARD)
    if kind == "bool" or (kind in {"int", "float"} and ":" not in text):
        is_truth = kind == "bool"  # a number's own text is not shown: it may be a secret
        got, meant = (text, "true or false") if is_truth else ("a number like 010 or .nan", "plain digits")
        walk.complain(node, path, f"got {got}, which readers of YAML disagree on; quote it, or write {meant}")
        raise NoValue
    return text
