"""Finds texts of a page that a reader would call English, for the tests of other languages."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Words that English sentences have and German ones do not.
_ENGLISH = re.compile(
    r"\b(the|is|are|were|its|it|of|and|not|has|have|had|with|without|for|by|that|this|to|from|because|no|or|"
    r"must|cannot|write|silenced|followed|paused|skipped|failed|cancelled|missed|enabled|disabled|none|true|false)\b",
    re.IGNORECASE,
)
_QUIET = {"code", "pre", "kbd", "svg", "script", "style", "option", "textarea"}  # names, code and what people entered
_READ = {"aria-label", "title", "placeholder", "alt"}
_EMPTY = {"input", "meta", "link", "br", "hr", "img", "source", "wbr", "use", "path", "line"}


class _Texts(HTMLParser):
    """The texts of a page by element: what people read or hear, and neither code nor what belongs to a form."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        kept = dict(attrs)
        if tag not in _EMPTY:
            is_quiet = tag in _QUIET or kept.get("lang") == "en" or "mono" in (kept.get("class") or "").split()
            self.open.append((tag, is_quiet))
        if not self._is_quiet():
            self.found += [value for name, value in attrs if name in _READ and value]

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not self._is_quiet() and data.strip():
            self.found.append(" ".join(data.split()))

    def _is_quiet(self) -> bool:
        return any(quiet for _, quiet in self.open)


def texts_in(html: str) -> list[str]:
    parser = _Texts()
    parser.feed(html)
    return parser.found


def english_texts(html: str, data: tuple[str, ...] = ()) -> list[str]:
    """The texts that read as English, without the data that people gave themselves."""
    found = []
    for text in texts_in(html):
        rest = text
        for one in data:
            rest = rest.replace(one, "")
        if _ENGLISH.search(rest):
            found.append(text)
    return found
