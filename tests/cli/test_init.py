"""init: a project to begin with, and nothing overwritten."""

from __future__ import annotations

import pytest


@pytest.fixture
def empty(rota):
    """A folder with nothing in it."""
    (rota.folder / "jobs.py").unlink()
    return rota


def test_what_it_writes_works_as_the_next_steps_say(empty, started):
    said = empty("init").stderr
    assert said.startswith("wrote rota.yaml and jobs.py\n")
    assert "rota dev\n" in said
    assert "rota enqueue greet ann --wait\n" in said
    dev = started("dev")
    dev.wait_for("ready; reloads")
    sent = started("enqueue", "greet", "ann", "--wait")
    assert sent.end() == 0
    assert sent.stdout == '"ANN"\n'
    assert empty("lint").stdout.endswith("all is well\n")


@pytest.mark.parametrize("name", ["jobs.py", "rota.yaml"])
def test_it_overwrites_nothing_and_leaves_nothing_half_done(empty, name):
    (empty.folder / name).write_text("mine")
    said = empty("init", code=6).stderr
    assert said.startswith(f"error: {name} is in {empty.folder} already")
    assert [path.name for path in empty.folder.iterdir()] == [name]
    assert (empty.folder / name).read_text() == "mine"


def test_a_link_to_nowhere_is_not_written_through(empty):
    (empty.folder / "rota.yaml").symlink_to("elsewhere")
    empty("init", code=6)
    assert not (empty.folder / "elsewhere").exists()


def test_settings_for_an_app_that_exists_need_no_sample(rota):
    assert "`rota init --app jobs.py` writes a rota.yaml for it" in rota("init", code=6).stderr
    assert rota("init", "--app", "jobs.py").stderr.startswith("wrote rota.yaml\n")
    assert rota("lint").stdout.splitlines()[1].endswith("jobs.py:app is loaded: 6 tasks")
    assert "'a b' is no target" in rota("init", "--app", "a b", code=2).stderr


@pytest.mark.parametrize(
    ("ignored", "is_told"), [(None, True), ("*.pyc\n", True), ("/.rota/\n", False), (".rota\n", False)]
)
def test_in_a_repository_it_says_what_to_ignore_and_changes_nothing(empty, ignored, is_told):
    (empty.folder / ".git").mkdir()
    if ignored is not None:
        (empty.folder / ".gitignore").write_text(ignored)
    assert ("add that line to .gitignore" in empty("init").stderr) == is_told
    assert ignored is None or (empty.folder / ".gitignore").read_text() == ignored
