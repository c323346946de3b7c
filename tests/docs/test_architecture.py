"""The architecture page is true: its layers and numbers are the project's, and every path that it names exists."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "rota"
PAGE = ROOT / "docs" / "architecture.md"
NAMED_PATH = re.compile(r"(?<![\w/.-])((?:[a-z_]+|<kind>)/(?:[a-z_]+/|<kind>/)*(?:[a-z_]+\.py)?)(?![\w/])")
SERVICE = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


@pytest.fixture
def architecture(monkeypatch):
    """The tool that writes the page's tables; it lies beside the package, not in it."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return importlib.import_module("tools.architecture")


def kinds_of(path):
    if "<kind>" not in path:
        return [path]
    return [path.replace("<kind>", kind) for kind in ("sqlite", "postgres", "redis", "mongo")]


def test_the_layers_are_those_that_are_linted(architecture):
    assert architecture.written("layers") == architecture.layers(), "run `make docs`"


def test_the_numbers_are_those_of_the_code(architecture):
    assert architecture.stale_figures() == [], "run `make docs`"


def test_a_figure_that_differs_is_found(architecture, monkeypatch):
    monkeypatch.setattr(architecture, "figures", lambda: [architecture.Figure("import cycles", 7, 0)])
    assert architecture.stale_figures() == ["import cycles"]


def test_every_path_that_the_page_names_exists():
    named = {path for match in NAMED_PATH.findall(PAGE.read_text(encoding="utf-8")) for path in kinds_of(match)}
    paths = {path for path in named if path.split("/")[0] in {entry.name for entry in SOURCE.iterdir()}}
    assert len(paths) > 20
    assert not [path for path in sorted(paths) if not (SOURCE / path).exists()]


def test_every_service_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8").partition("## Services of a node")[2].partition("## Stores")[0]
    code = "\n".join(path.read_text(encoding="utf-8") for path in (SOURCE / "engine").rglob("*.py"))
    services = set(SERVICE.findall(text))
    assert services == {
        name for name, base in re.findall(r"^class (\w+)\((\w+)\):", code, re.MULTILINE) if base == "Service"
    }
