"""Reads the keys that only document queues have in rota.yaml: a condition, paths of fields, and a collection if the
source is a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.config.fields import DOCUMENT_FIELDS, DOCUMENTS
from rota.config.json_values import NoValue, json_value
from rota.config.nodes import is_mapping, is_null, kind_words, said
from rota.config.read_value import read_value
from rota.config.words import misfit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rota.config.fields import Field
    from rota.config.nodes import Walk

    Nodes = Callable[[str, Any, Mapping[str, Field]], dict[str, Any]]

FOUR = "four"
LOCK = ("locked_until", "locked_by")


def read_condition(walk: Walk, path: str, node: Any) -> dict[str, Any] | None:
    """The condition as JSON has it; None if there is none."""
    if node is None or is_null(node):
        return None
    if not is_mapping(node):
        walk.complain(node, path, misfit(kind_words(node), DOCUMENTS["condition"].kind.wanted))
        return None
    try:
        found: dict[str, Any] = json_value(walk, node, path)
    except NoValue:
        return None
    return found


def read_paths(walk: Walk, path: str, node: Any, nodes_of: Nodes) -> dict[str, str | None]:
    """Paths by the names of fields. None: there is no such field."""
    if node is None or is_null(node):
        return {}
    if said(node) == FOUR:
        return dict.fromkeys(LOCK)
    if not is_mapping(node):
        walk.complain(node, path, misfit(kind_words(node), DOCUMENTS["fields"].kind.wanted))
        return {}
    paths: dict[str, str | None] = {}
    for key, inner in nodes_of(path, node, DOCUMENT_FIELDS).items():
        if is_null(inner) and key in LOCK:
            paths[key] = None
        elif (found := read_value(walk, inner, f"{path}.{key}", DOCUMENT_FIELDS[key].kind)) is not None:
            paths[key] = found.value
    return paths


def check_source(walk: Walk, path: str, key_node: Any, nodes: Mapping[str, Any], source: str | None) -> None:
    """A URL needs a collection. A source that code makes has its collection, condition and fields already."""
    if source is None:
        return
    if "://" in source:
        if "collection" not in nodes:
            walk.complain(key_node, path, f"has no `collection`; wanted {DOCUMENTS['collection'].kind.wanted}")
        return
    for key in ("collection", "condition", "fields", "key", "times"):
        if key in nodes:
            what = f"belongs to a source with a URL; {source} is made by code, so say it there"
            walk.complain(nodes[key], f"{path}.{key}", what)
