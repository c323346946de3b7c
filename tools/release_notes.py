"""Writes the release notes of a version from CHANGELOG.md: `python -m tools.release_notes 0.1.0`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
HEADING = re.compile(r"^## (?P<version>\S+)(?: \((?P<date>\d{4}-\d\d-\d\d)\))?$", flags=re.MULTILINE)


class NoNotes(Exception):
    """The changelog says nothing of this version; says what to do."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tools.release_notes VERSION", file=sys.stderr)  # noqa: T201 - what it is for
        return 2
    try:
        print(notes_of(arguments[0]), end="")  # noqa: T201 - what it is for
    except NoNotes as err:
        print(f"error: {err}", file=sys.stderr)  # noqa: T201 - what it is for
        return 1
    return 0


def notes_of(version: str, changelog: str | None = None) -> str:
    """A title with the date, how to install it, and what the changelog has about it."""
    text = CHANGELOG.read_text(encoding="utf-8") if changelog is None else changelog
    headings = list(HEADING.finditer(text))
    for this, following in zip(headings, [*headings[1:], None], strict=True):
        if this["version"] == version:
            body = text[this.end() : following.start() if following else None].strip()
            return _page(version, this["date"], body)
    known = ", ".join(heading["version"] for heading in headings)
    raise NoNotes(f"CHANGELOG.md has no section for {version}; it has {known}")


def _page(version: str, date: str | None, body: str) -> str:
    if date is None:
        raise NoNotes(f"{version} has no date in CHANGELOG.md; write `## {version} (YYYY-MM-DD)`")
    if not body:
        raise NoNotes(f"the section for {version} in CHANGELOG.md is empty")
    install = f"```console\n$ pip install rota=={version}\n```"
    body = re.sub(r"^###", "##", body, flags=re.MULTILINE)  # the version's heading is this page's title
    return f"# Rota {version}\n\n{date}\n\n{install}\n\n{body}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
