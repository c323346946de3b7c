"""How a target becomes an app, and what is said where it does not."""

from __future__ import annotations

import pytest

from rota.app import internals
from rota.cli.target import load_target
from rota.errors import BadTarget

APP = "from rota import App\napp = App()\n"


def refused(rota, target: str) -> str:
    return rota("run", target, code=3).stderr


def test_a_file_is_imported_under_its_stem_and_keeps_its_store_beside_itself(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "sibling.py").write_text("NAME = 'ann'\n")
    (folder / "sub" / "tasks_here.py").write_text(f"{APP}import sibling\n@app.task\ndef greet(): ...\n")
    target = load_target("sub/tasks_here.py")
    assert internals(target.app).registry.names() == ("tasks_here.greet",)
    assert internals(target.app).store.folder == folder / "sub"
    assert target.name == "sub/tasks_here.py:app"


def test_a_file_may_be_named_from_elsewhere(folder, monkeypatch):
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert internals(load_target("../jobs.py").app).store.folder == folder


def test_a_module_and_a_name_in_it_are_targets(folder):
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "work.py").write_text("from rota import App\none = App(name='one')\ntwo = App(name='two')\n")
    assert load_target("shop.work:two").app.name == "two"
    assert internals(load_target("shop.work:one").app).store.folder == folder


def test_two_names_for_one_app_are_one_app(folder):
    (folder / "twice.py").write_text(f"{APP}same = app\n")
    assert load_target("twice.py").name == "twice.py:app"


def test_an_app_among_many_must_be_named(rota):
    (rota.folder / "many.py").write_text("from rota import App\na = App()\nb = App()\n")
    assert "many.py has 2 Apps, a, b; say which: many.py:a or many.py:b" in refused(rota, "many.py")


def test_a_target_without_an_app_is_told_how_to_get_one(rota):
    (rota.folder / "plain.py").write_text("x = 1\n")
    assert "error: plain.py has no App; add `app = App()`" in refused(rota, "plain.py")


def test_an_app_without_a_task_is_an_error_and_never_an_idle_worker(rota):
    (rota.folder / "idle.py").write_text(APP)
    assert "error: idle.py:app has no task, so there is nothing to run" in refused(rota, "idle.py")


def test_a_name_that_is_no_app_is_told_what_there_is(rota):
    assert "jobs.py has nothing called 'ap'; it has app" in refused(rota, "jobs.py:ap")
    assert "jobs.py has 'greet', but that is no App; it has app" in refused(rota, "jobs.py:greet")


def test_a_missing_file_or_module_is_told_with_what_is_near(rota):
    assert "there is no file job.py in" in refused(rota, "job.py")
    assert "did you mean jobs.py?" in refused(rota, "job.py")
    assert "there is no module 'jobz'" in refused(rota, "jobz")
    assert "'my jobs' names no module" in refused(rota, "my jobs")


def test_an_error_in_the_target_shows_its_own_traceback_alone(rota):
    (rota.folder / "broken.py").write_text(f"{APP}from rota import cron\ncron('61 * * * *')\n")
    said = refused(rota, "broken.py")
    assert 'broken.py", line 4, in <module>' in said
    assert "BadCronField: minute field '61'" in said
    assert "src/rota" not in said
    assert "importlib" not in said
    assert said.splitlines()[-1].startswith("error: broken.py cannot be imported (broken.py:4: BadCronField: minute")


def test_an_import_that_the_target_misses_is_its_own_error(rota):
    (rota.folder / "needs.py").write_text("import nothing_like_this\n")
    said = refused(rota, "needs")
    assert "import nothing_like_this" in said
    assert "error: needs cannot be imported (needs.py:1: ModuleNotFoundError" in said


def test_a_cause_is_shown_without_our_frames_too(rota):
    text = (
        f"{APP}from rota import cron\ntry:\n    cron('x')\nexcept ValueError as err:\n    raise KeyError(1) from err\n"
    )
    (rota.folder / "caused.py").write_text(text)
    said = refused(rota, "caused.py")
    assert "direct cause" in said
    assert "src/rota" not in said


def test_a_syntax_error_and_an_exit_are_told(rota):
    (rota.folder / "syntax.py").write_text("def (\n")
    assert "SyntaxError: invalid syntax" in refused(rota, "syntax.py")
    (rota.folder / "leaves.py").write_text("raise SystemExit(0)\n")
    assert "leaves.py ended the program while it was imported" in refused(rota, "leaves.py")


def test_a_file_may_not_hide_a_module_that_others_need(rota):
    (rota.folder / "queue.py").write_text(APP)
    assert "queue.py has the name of another module, 'queue', and would hide it" in refused(rota, "queue.py")


def test_a_file_inside_a_package_is_warned_about(rota):
    (rota.folder / "shop").mkdir()
    (rota.folder / "shop" / "__init__.py").touch()
    (rota.folder / "shop" / "shop_jobs.py").write_text(APP)
    assert "shop.shop_jobs is the target to use" in refused(rota, "shop/shop_jobs.py")


def test_no_target_at_all_is_a_matter_of_usage(rota):
    said = rota("run", code=2).stderr
    assert said.startswith("error: no TARGET is given and ROTA_APP is not set")


def test_a_failed_import_leaves_nothing_behind(folder):
    (folder / "once_bad.py").write_text("1 / 0\n")
    with pytest.raises(BadTarget):
        load_target("once_bad.py")
    (folder / "once_bad.py").write_text(APP)
    assert load_target("once_bad.py").app.name == "app"
