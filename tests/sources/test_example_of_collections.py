"""The project in examples/collections says what it means to."""

from __future__ import annotations

import runpy
from pathlib import Path

import yaml

from rota.app import internals
from rota.operations.collections import read_sources

FOLDER = Path(__file__).parents[2] / "examples" / "collections"


def test_the_example_declares_collections_of_two_sources():
    app = runpy.run_path(str(FOLDER / "jobs.py"))["app"]
    said = yaml.safe_load((FOLDER / "rota.yaml").read_text(encoding="utf-8"))
    specs = read_sources(said["sources"], internals(app).registry)
    assert [(spec.sync.source, spec.sync.collection) for spec in specs.values()] == [
        ("shop", "orders"),
        ("shop", "customers"),
        ("shop", "countries"),
        ("billing", "public.invoices"),
    ]
