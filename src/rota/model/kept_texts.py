"""Writes and reads the texts that a store keeps: one template makes a text, and finds its code and values again."""

from __future__ import annotations

import re
from functools import cached_property
from string import Formatter
from typing import TYPE_CHECKING

from rota.sentences import Said, Sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 500  # characters; a longer text was written by people, or holds an error
DEEPEST = 4


class KeptTexts:
    """A table of templates. A text that a person wrote is none of them, and stays as it is."""

    def __init__(
        self,
        prefix: str,
        templates: Mapping[str, str],
        *,
        nested: frozenset[str] = frozenset(),
        names: frozenset[str] = frozenset(),
    ) -> None:
        self._prefix = prefix
        self._templates = templates
        self._nested = nested  # values that are texts of the table themselves
        self._names = names  # values without a colon

    def text(self, code: str, /, **values: object) -> str:
        """The text that the store keeps."""
        return self._templates[code].format(**values)

    def read(self, text: str, depth: int = 0) -> Said:
        """A kept text with its code and values; the text itself if it is none of the table."""
        if len(text) > LONGEST or depth > DEEPEST:
            return text
        for code, pattern in self._patterns:
            if (found := pattern.fullmatch(text)) is not None:
                values = {
                    name: self.read(value, depth + 1) if name in self._nested else value
                    for name, value in found.groupdict().items()
                }
                return Sentence(f"{self._prefix}.{code}", self._templates[code], values)
        return text

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """The most literal first: fixed words identify a text better than values."""
        ordered = sorted(self._templates.items(), key=lambda one: -len(_literal(one[1])))
        return [(code, re.compile(self._pattern(template), re.DOTALL)) for code, template in ordered]

    def _pattern(self, template: str) -> str:
        found, seen = "", set[str]()
        for text, name, *_ in Formatter().parse(template):
            found += re.escape(text)
            if name:
                value = r"[^:\n]+?" if name in self._names else ".+?"
                found += f"(?P={name})" if name in seen else f"(?P<{name}>{value})"
                seen.add(name)
        return found


def _literal(template: str) -> str:
    return "".join(text for text, *_ in Formatter().parse(template))
