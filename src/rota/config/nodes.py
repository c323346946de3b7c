"""Reads nodes of a YAML tree as text, and walks over them to collect complaints with their lines.

A node that is named by aliases is walked each time it is named, so the walk counts its steps and ends if they are too
many: a few lines of aliases of aliases would otherwise stand for more than any memory holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rota.config.words import misfit

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_STEPS = 100_000

STANDARD = "tag:yaml.org,2002:"
PLAIN = {f"{STANDARD}{tag}" for tag in ("str", "int", "float", "bool", "timestamp", "value", "null")}


class TooMuch(Exception):
    """The walk has taken more steps than a file of settings can need."""


class Walk:
    """Collects the places of nodes, the number of visited ones, and the complaints about them."""

    def __init__(self, place: str) -> None:
        self.complaints: list[str] = []
        self._place = place
        self._steps = 0

    def at(self, node: Any) -> str:
        """rota.yaml:3"""
        return f"{self._place}:{node.start_mark.line + 1}"

    def complain(self, node: Any, path: str, what: str) -> None:
        named = f"{path}: " if path else ""
        self.complaints.append(f"{self.at(node)}: {named}{what}")

    def step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            self._give_up()

    def pairs(self, mapping: Any, prefix: str, wanted: str = "the name of a setting") -> Iterator[tuple[str, Any, Any]]:
        """Names with their nodes; a name that occurs twice is a complaint, as is one that is no name."""
        seen: dict[str, int] = {}
        for key_node, node in mapping.value:
            self.step()
            name = said(key_node)
            if not isinstance(name, str):
                self.complain(key_node, prefix.rstrip("."), misfit(kind_words(key_node), wanted))
            elif name in seen:
                self.complain(key_node, prefix + name, f"is said twice, first in line {seen[name]}; keep one of them")
            else:
                seen[name] = key_node.start_mark.line + 1
                yield name, key_node, node

    def items(self, sequence: Any) -> Iterator[Any]:
        """The nodes of a list."""
        for node in sequence.value:
            self.step()
            yield node

    def _give_up(self) -> NoReturn:
        self.complaints.append(
            f"{self._place}: got more than {MOST_STEPS:,} values, each alias counted as often as it is used; "
            "wanted a file of settings in YAML"
        )
        raise TooMuch


def said(node: Any) -> str | list[str] | None:
    """The text of a scalar, or the texts of a list; None for anything else."""
    if node.id == "scalar" and node.tag in PLAIN and not is_null(node):
        return str(node.value)
    if node.id == "sequence":
        items = [said(item) if item.id == "scalar" else None for item in node.value]
        return (
            [item for item in items if isinstance(item, str)] if all(isinstance(item, str) for item in items) else None
        )
    return None


def is_mapping(node: Any) -> bool:
    return bool(node.id == "mapping" and node.tag == f"{STANDARD}map")


def is_list(node: Any) -> bool:
    return bool(node.id == "sequence" and node.tag == f"{STANDARD}seq")


def is_null(node: Any) -> bool:
    return bool(node.id == "scalar" and node.tag == f"{STANDARD}null")


def kind_words(node: Any) -> str:
    """A description of a node."""
    if is_null(node):
        return "nothing"
    usual = {"mapping": {f"{STANDARD}map"}, "sequence": {f"{STANDARD}seq"}}.get(node.id, PLAIN)
    if node.tag not in usual:
        return f"the tag {node.tag.replace(STANDARD, '!!')}"
    if node.id == "scalar":
        return repr(node.value if len(node.value) <= 60 else f"{node.value[:57]}...")
    if node.id == "mapping":
        return "a mapping"
    return "a list" if all(item.id == "scalar" for item in node.value) else "a list within a list"
