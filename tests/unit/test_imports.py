"""Importing Rota costs little and does nothing: no heavy module, no thread, no file."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rota

LOOK = """
import json, sys, threading
{code}
print(json.dumps({{"modules": sorted(sys.modules), "threads": threading.active_count()}}))
"""
HEAVY = {"sqlite3", "_sqlite3", "asyncio", "rich", "click", "yaml", "concurrent.futures"}


def look(code: str, folder) -> dict:
    """What a fresh interpreter has after this code."""
    command = [sys.executable, "-c", LOOK.format(code=code)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, cwd=folder)
    assert ran.stderr == ""
    return json.loads(ran.stdout)


DECLARE = """
import rota
app = rota.App()
@app.schedule(rota.every("1h"))
@app.task(retries=3, name="tick")
def tick(): ...
"""


@pytest.mark.parametrize("code", ["import rota", "from rota import *", DECLARE], ids=["import", "star", "declare"])
def test_importing_and_declaring_loads_nothing_heavy_and_does_nothing(code, tmp_path):
    seen = look(code, tmp_path)
    assert HEAVY & set(seen["modules"]) == set()
    assert seen["threads"] == 1
    assert list(tmp_path.iterdir()) == []


def test_only_the_store_that_is_used_is_loaded(tmp_path):
    memory = look("import rota; rota.App('memory://').open()", tmp_path)
    assert "sqlite3" not in memory["modules"]
    assert list(tmp_path.iterdir()) == []
    sqlite = look("import rota; rota.App().open()", tmp_path)
    assert "rota.store.memory" not in sqlite["modules"]
    assert [path.name for path in tmp_path.iterdir()] == [".rota"]


def test_who_only_enqueues_loads_no_engine_loops(tmp_path):
    code = "import rota; app = rota.App('memory://'); t = app.task(name='x')(lambda: 0); t.enqueue()"
    seen = look(code, tmp_path)
    assert {"asyncio", "rota.engine.worker.worker", "rota.engine.node"} & set(seen["modules"]) == set()
    assert seen["threads"] == 1


def test_all_public_names_exist_and_are_listed(tmp_path):
    seen = look(
        "import rota; missing = [n for n in rota.__all__ if not hasattr(rota, n)]; assert not missing", tmp_path
    )
    assert "rota" in seen["modules"]


def test_importing_leaves_logging_alone(tmp_path):
    code = "import logging; before = list(logging.getLogger().handlers); import rota; "
    look(code + "assert logging.getLogger().handlers == before; assert logging.getLogger().level == 30", tmp_path)


def test_type_checkers_see_what_there_is_at_run_time():
    tree = ast.parse(Path(rota.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        (alias.name, node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {*rota._WHERE.items(), ("*", "rota.errors")}


def test_a_star_import_brings_every_public_name(tmp_path):
    look("from rota import *; App, cron, RotaError, StoreReplaced, walk", tmp_path)
