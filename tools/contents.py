"""Reads the contents of the documentation from docs/README.md, and writes what follows from them.

docs/README.md lists every page once. The site's navigation, docs/decisions/README.md and docs/llms.txt are made from it
and from the pages' titles, so that a new page needs one line in one place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
DECISIONS = DOCS / "decisions" / "README.md"
LLMS = DOCS / "llms.txt"
HEADING = re.compile(r"^(##+) (.+)$")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\)")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
LABEL = re.compile(r"\*\*[A-Z][\w ]+\.\*\* ")  # as decisions begin: **Context.**
LONGEST = 200  # characters of a page's description in llms.txt


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One page: where docs/README.md lists it, under which text, and its path from docs/."""

    sections: tuple[str, ...]
    title: str
    path: str


def entries() -> list[Entry]:
    """The pages in the order of docs/README.md; the decisions follow in the order of their numbers."""
    found: list[Entry] = []
    sections: tuple[str, ...] = ()
    for line in INDEX.read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            sections = (*sections[: len(heading[1]) - 2], heading[2])
        elif entry := ENTRY.match(line):
            found.append(Entry(sections=sections, title=entry[1], path=entry[2]))
    return [*found, *(_decision(path) for path in decisions())]


def decisions() -> list[Path]:
    return sorted(path for path in DECISIONS.parent.glob("[0-9]*.md"))


def _decision(path: Path) -> Entry:
    return Entry(sections=("Decisions",), title=title_of(path), path=path.relative_to(DOCS).as_posix())


def unlisted() -> list[str]:
    """The pages of docs/ that docs/README.md does not list."""
    listed = {entry.path for entry in entries()} | {"README.md"}
    return sorted({path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - listed)


def title_of(page: Path) -> str:
    """The page's first heading, without Markdown's marks."""
    heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return _plain(heading[1]) if heading else page.stem


def opening_of(page: Path) -> str:
    """The first sentence of the page's first paragraph."""
    text = re.sub(r"<!--.*?-->|```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in text.partition("\n# ")[2].split("\n\n")[1:] or text.split("\n\n")[1:]:
        paragraph = _plain(LABEL.sub("", " ".join(block.split())))
        if re.match(r"[A-Z`\"“]", paragraph) and len(paragraph) > len("A short text."):
            return _first_sentence(paragraph)
    return ""


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.?!])\s+(?=[A-Z`\"])|:\s*$", text, maxsplit=1)[0]
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST].rsplit(' ', 1)[0]} …"


def _plain(text: str) -> str:
    return LINK.sub(r"\1", text).replace("**", "").strip()


def decisions_text() -> str:
    rows = [f"- [{title_of(path)}]({path.name})" for path in decisions()]
    return (
        "<!-- Made from the pages by `make docs`. -->\n\n# Decisions\n\n"
        "Each page records one choice: what the situation was, what was decided, and what it costs. Numbers\n"
        "are not used again.\n\n" + "\n".join(rows) + "\n"
    )


def llms_text() -> str:
    """The index for language models, as https://llmstxt.org describes it; paths are those of the Markdown pages."""
    parts = ["# Rota", _quoted(), "The pages are Markdown. Code in them is run by the tests."]
    section = ""
    for entry in entries():
        if entry.sections[0] != section:
            section = entry.sections[0]
            parts.append(f"## {section}\n")
        parts.append(_llms_entry(entry))
    return re.sub(r"\n\n(?=- )", "\n", "\n\n".join(parts)) + "\n"


def _quoted() -> str:
    opening = INDEX.read_text(encoding="utf-8").split("\n\n")[1]
    return f"> {_first_sentence(_plain(' '.join(opening.split())))}"


def _llms_entry(entry: Entry) -> str:
    page = DOCS / entry.path
    opening = opening_of(page)
    return f"- [{title_of(page)}]({entry.path})" + (f": {opening}" if opening else "")


WRITTEN = {DECISIONS: decisions_text, LLMS: llms_text}


def stale() -> list[Path]:
    """The files that are not what the pages say."""
    return [path for path, text in WRITTEN.items() if not path.exists() or path.read_text(encoding="utf-8") != text()]


def write() -> None:
    for path, text in WRITTEN.items():  # in this order: llms.txt quotes the page of decisions
        path.write_text(text(), encoding="utf-8")
