"""Where rota.yaml is looked for: here, then in the parents up to the project's root; or where ROTA_CONFIG points."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.config.finding import find_file
from rota.errors import BadSettings


@pytest.fixture
def deep(tmp_path):
    folder = tmp_path / "project" / "src" / "shop"
    folder.mkdir(parents=True)
    return folder


def test_the_nearest_one_counts(deep):
    for folder in (deep.parent, deep.parents[1]):
        (folder / "rota.yaml").touch()
    assert find_file(deep, {}) == deep.parent / "rota.yaml"
    (deep / "rota.yaml").touch()
    assert find_file(deep, {}) == deep / "rota.yaml"


@pytest.mark.parametrize("make", [lambda git: git.mkdir(), lambda git: git.write_text("gitdir: elsewhere")])
def test_the_search_ends_with_the_repository(deep, make):
    make(deep.parent / ".git")
    (deep.parents[1] / "rota.yaml").touch()
    assert find_file(deep, {}) is None
    (deep.parent / "rota.yaml").touch()
    assert find_file(deep, {}) == deep.parent / "rota.yaml"


def test_the_home_is_no_project_of_the_folders_in_it(deep, monkeypatch):
    home = deep.parents[1]
    monkeypatch.setattr(Path, "home", lambda: home)
    (home / "rota.yaml").touch()
    assert find_file(deep, {}) is None
    assert find_file(home, {}) == home / "rota.yaml"


def test_a_parent_in_which_anybody_may_write_is_not_trusted(deep):
    (deep.parent / "rota.yaml").touch()
    deep.parent.chmod(0o1777)
    assert find_file(deep, {}) is None
    assert find_file(deep.parent, {}) == deep.parent / "rota.yaml"


def test_a_folder_or_a_broken_link_of_that_name_is_found_too_so_that_it_can_be_told(deep):
    (deep / "rota.yaml").symlink_to("nowhere")
    assert find_file(deep, {}) == deep / "rota.yaml"


def test_a_variable_names_another_file_from_here_or_from_anywhere(deep):
    (deep / "rota.yaml").touch()
    (deep.parent / "other.yaml").touch()
    assert find_file(deep, {"ROTA_CONFIG": "../other.yaml"}) == deep / "../other.yaml"
    assert find_file(deep, {"ROTA_CONFIG": str(deep.parent / "other.yaml")}) == deep.parent / "other.yaml"
    assert find_file(deep, {"ROTA_CONFIG": ""}) == deep / "rota.yaml"
    with pytest.raises(BadSettings, match=r"^ROTA_CONFIG names .*gone.yaml, and there is no such file$"):
        find_file(deep, {"ROTA_CONFIG": "gone.yaml"})
