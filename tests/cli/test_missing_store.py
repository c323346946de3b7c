"""A SQLite file that is not there: what looks or operates makes none, and a -wal file that is there is left alone."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from rota.cli.imports import imports
from rota.cli.main import main

MAKERS = {
    *("dev", "demo", "run", "worker", "scheduler", "web", "enqueue", "migrate"),
    *("schedules add", "schedules apply", "token create", "alerts add"),
    *(f"import {name}" for name in imports.commands),
}
NEED_NONE = {"config show", "schedules plan", "alerts rules"}
FAILS_WITHOUT = {"alerts test": 5}  # what it speaks of is looked for in the code, and is not there


def on_stores(command=main, path=()):
    """All commands that take a store, and the words that each cannot do without."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from on_stores(below, (*path, name))
    elif any(param.name == "store_url" for param in command.params) and " ".join(path) not in MAKERS:
        given = ["x" for param in command.params if isinstance(param, click.Argument) and param.required]
        yield (*path, *given)


@pytest.fixture
def named(rota, monkeypatch):
    """An app is named, and has no store yet."""
    monkeypatch.setenv("ROTA_APP", "jobs.py")
    return rota


@pytest.mark.parametrize("words", list(on_stores()), ids=" ".join)
def test_what_looks_or_operates_makes_no_store(named, words):
    is_free = any(" ".join(words).startswith(name) for name in (*NEED_NONE, *FAILS_WITHOUT))
    code = 0 if is_free else 1 if words[0] in {"doctor", "health"} else 4
    said = named(*words, code=FAILS_WITHOUT.get(" ".join(words[:2]), code))
    assert is_free or "there is no store at" in said.output
    assert not (named.folder / ".rota").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("enqueue", "greet", "ann"),
        ("migrate",),
        ("schedules", "add", "often", "send", "ann", "--every", "1h"),
        ("schedules", "apply"),
        ("token", "create", "--name", "ann"),
        ("alerts", "add", "nodes", "--when", "node_gone"),
        ("worker", "jobs.py", "--until-empty"),
    ],
    ids=" ".join,
)
def test_what_begins_work_makes_the_store(named, words):
    named(*words)
    assert (named.folder / ".rota" / "rota.db").exists()


@pytest.mark.parametrize("system", imports.commands)
def test_an_import_whose_source_cannot_be_read_makes_no_store(named, system):
    source = "redis://127.0.0.1:1" if system == "rq-scheduler" else "nothing"
    options = ("--task", "send") if system == "crontab" else ()
    assert CliRunner().invoke(main, ["import", system, source, *options]).exit_code in {2, 3, 4}
    assert not (named.folder / ".rota").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "list"),
        ("schedules", "plan"),
        ("jobs", "list", "--store", "sqlite:///.rota/rota.db"),
        ("enqueue", "greet", "ann"),
        ("migrate",),
        ("migrate", "--plan"),
        ("worker", "jobs.py", "--until-empty"),
        ("copy", "--from", "sqlite:///.rota/rota.db", "--to", "sqlite:///new.db", "-y"),
        ("doctor",),
        ("health",),
    ],
    ids=" ".join,
)
def test_a_wal_file_without_its_file_is_left_alone(named, words):
    wal = named.folder / ".rota" / "rota.db-wal"
    wal.parent.mkdir()
    wal.write_bytes(b"what was written last")
    said = named(*words, code=1 if words[0] in {"doctor", "health"} else 4).output
    assert "rota.db is missing, but its -wal file is there: the file was moved away" in said
    assert wal.read_bytes() == b"what was written last"
    assert [path.name for path in wal.parent.iterdir()] == ["rota.db-wal"]


@pytest.mark.parametrize(
    "words",
    [
        ("enqueue", "greet", "ann"),
        ("schedules", "add", "often", "send", "ann", "--every", "1h"),
        ("schedules", "apply"),
        ("token", "create", "--name", "ann"),
    ],
    ids=" ".join,
)
def test_what_begins_work_makes_the_store_that_is_named(named, words):
    named(*words, "--store", "sqlite:///new.db")
    assert (named.folder / "new.db").exists()
    assert not (named.folder / ".rota").exists()


def test_a_plan_for_a_store_that_is_not_there_makes_none(named):
    assert "+ report  add" in named("schedules", "plan", "--store", "sqlite:///new.db").stdout
    assert not (named.folder / "new.db").exists()


def test_without_an_app_a_store_that_is_not_there_is_refused(rota):
    for words in (("schedules", "plan"), ("schedules", "apply"), ("token", "create", "--name", "ann")):
        said = rota(*words, "--store", "sqlite:///new.db", code=4).stderr
        assert "there is no store at" in said
    assert not (rota.folder / "new.db").exists()
