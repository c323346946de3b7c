"""docs/README.md lists every page, what is made from it is true, and every anchor exists as GitHub makes it."""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.fixture
def contents(monkeypatch):
    """The tool that reads docs/README.md; it lies beside the package, not in it."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return importlib.import_module("tools.contents")


def text_of(page: Path) -> str:
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    """What GitHub makes of headings: lower case, without punctuation, spaces as hyphens, numbered if repeated."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(text_of(page)):
        words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def test_every_page_is_listed_once(contents):
    assert contents.unlisted() == [], "add these pages to docs/README.md"
    assert [path for path, times in Counter(entry.path for entry in contents.entries()).items() if times > 1] == []


def test_what_is_made_from_the_list_is_what_it_says(contents):
    assert contents.stale() == [], "run `make docs`"


def test_a_new_page_is_missed(contents, monkeypatch):
    monkeypatch.setattr(contents, "entries", list)
    assert "guides/schedules.md" in contents.unlisted()


def test_no_two_decisions_have_one_number(contents):
    numbers = Counter(path.name[:4] for path in contents.decisions())
    assert [number for number, times in numbers.items() if times > 1] == []
    for path in contents.decisions():
        assert contents.title_of(path).startswith(f"{int(path.name[:4])}. "), path.name


def test_the_index_for_language_models_names_every_page_with_its_title(contents):
    text = contents.LLMS.read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        if page != DOCS / "README.md":
            assert f"- [{contents.title_of(page)}]({page.relative_to(DOCS)})" in text


def test_every_anchor_leads_to_a_heading():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    links = [(page, *found) for page in pages for found in ANCHOR.findall(text_of(page))]
    assert len(links) > 50
    broken = [
        f"{page.relative_to(ROOT)}: {path}#{anchor}"
        for page, path, anchor in links
        if anchor not in anchors_of(page.parent / path if path else page)
    ]
    assert broken == []
