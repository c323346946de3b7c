"""The reference is made from the code, and the pages that are kept are those that it makes."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import click
import pytest

import rota
from rota.cli.main import main
from rota.engine.events import NAMES

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.fixture
def reference(monkeypatch):
    """The generator; it lies beside the package, not in it."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return importlib.import_module("tools.reference")


def test_the_pages_are_what_the_code_says(reference):
    assert reference.stale() == [], "run `make docs`"


def test_a_page_that_differs_is_found(reference, monkeypatch):
    monkeypatch.setitem(reference.PAGES, "errors.md", lambda: "# Errors\n\nnone")
    assert reference.stale() == ["errors.md"]


def test_every_command_public_name_and_event_has_its_place(reference):
    cli, python, events = (reference.text_of(name) for name in ("cli.md", "python.md", "events.md"))
    for path in commands(main, "rota"):
        assert f"\n### {path}\n" in cli
    errors = reference.text_of("errors.md")
    for name in rota.__all__:
        assert f"\n## {name}\n" in python or f"| `{name}` |" in errors, name
    rows = {line.split("`")[1]: line for line in events.splitlines() if line.startswith("| `")}
    assert set(rows) == NAMES
    assert not [name for name, row in rows.items() if row.endswith("|  |")], "an event without fields"


def test_the_fields_of_events_are_those_that_handlers_get(reference):
    fields = importlib.import_module("tools.event_page").fields_of_events()
    del reference
    app = rota.App("memory://")
    heard: dict[str, set[str]] = {}
    app.on("*", lambda event: heard.setdefault(event.name, set()).update(event.data))

    @app.task(retries=0)
    def fails() -> None:
        raise ValueError

    @app.task
    def works() -> None: ...

    with app.running(scheduler=False) as node:
        for job in (works.enqueue(), fails.enqueue()):
            app.jobs.wait(job.id, "20s")
        assert node.worker.is_idle.wait(20)
    app.close()
    assert {"job.enqueued", "job.started", "job.succeeded", "job.failed", "node.started", "node.stopped"} <= set(heard)
    for name, got in heard.items():
        assert got == set(fields[name]), name


def test_every_link_between_pages_leads_somewhere():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def commands(group: click.Group, path: str) -> list[str]:
    found = []
    for name, command in group.commands.items():
        found.append(f"{path} {name}")
        if isinstance(command, click.Group):
            found += commands(command, f"{path} {name}")
    return found


def test_every_option_setting_and_parameter_has_a_meaning(reference):
    """A row of the reference that names something and does not say what it means."""
    silent = [
        f"{name}: {line}"
        for name in ("cli.md", "settings.md", "python.md")
        for line in reference.text_of(name).splitlines()
        if line.startswith("| `") and re.match(r"\| `[^`]+` \|\s*\|", line)
    ]
    assert silent == [], "give it a meaning: help= of the option, the setting's, or tools/parameters.py"
