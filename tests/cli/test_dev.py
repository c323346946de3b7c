"""dev as a real process: live lines, and reloads when the code changes."""

from __future__ import annotations

import os
import py_compile
import signal
from datetime import UTC, datetime

from rota import App
from rota.cli.live_lines import PRINTED, LiveLines
from rota.cli.reloading import Code, folder_of
from rota.model.jobs.job import State
from rota.model.micros import SECOND

GREET = """
from rota import App

app = App()


@app.task(retries=0)
def greet(name: str):
    print("hello", name)
    return {"ann": 1}[name]
"""


def test_dev_shows_jobs_and_takes_up_changed_code(rota, started):
    jobs = rota.folder / "jobs.py"
    jobs.write_text(GREET)
    process = started("dev", "jobs.py")
    process.wait_for("ready")
    rota.enqueue("greet", "ann")
    assert "│           jobs.greet('ann')  hello ann" in process.wait_for("hello ann")
    process.wait_for("ms  jobs.greet('ann')")
    rota.enqueue("greet", "bob")
    assert "✘ " in process.wait_for("ms  jobs.greet('bob')  KeyError: 'bob'")
    process.wait_for("""return {"ann": 1}[name]""")  # its traceback

    jobs.write_text(GREET.replace("import App", "import Apq"))
    process.wait_for("jobs.py changed")
    process.wait_for("error: jobs.py cannot be imported (jobs.py:2: ImportError")
    assert "from rota import Apq" in process.stderr
    process.wait_for(f"waiting for a change in {rota.folder}")

    jobs.write_text(GREET.replace("hello", "welcome"))
    process.wait_for("reloaded")
    rota.enqueue("greet", "ann")
    process.wait_for("jobs.greet('ann')  welcome ann")
    process.signal(signal.SIGINT)
    assert process.end() == 130
    assert "SIGINT: stopping" in process.stderr
    assert "rota/engine" not in process.stderr
    assert "\x1b" not in process.stderr


def test_a_change_of_the_same_length_within_one_second_is_taken_up(rota, started):
    """By second and length, Python would take compiled code for that of the changed file."""
    jobs = rota.folder / "jobs.py"
    jobs.write_text(GREET)
    second = jobs.stat().st_mtime_ns // 10**9 * 10**9
    os.utime(jobs, ns=(second, second))
    process = started("dev", "jobs.py")
    process.wait_for("ready")
    py_compile.compile(str(jobs))  # as another command would that imports it
    jobs.write_text(GREET.replace("hello", "howdy"))
    os.utime(jobs, ns=(second + 1, second + 1))
    process.wait_for("reloaded")
    rota.enqueue("greet", "ann")
    process.wait_for("jobs.greet('ann')  howdy ann")


def test_a_reload_waits_two_seconds_and_hands_back_what_still_runs(rota, started, store):
    job_id = rota.enqueue("hold", "gate")
    process = started("dev", "jobs.py")
    process.wait_for("holding")
    (rota.folder / "other.py").write_text("")
    process.wait_for("other.py changed")
    process.wait_for("reloading: waiting up to 2 s for 1 running")
    process.wait_for("returned to its queue: worker shutdown")
    process.wait_for("reloaded")
    (rota.folder / "gate").touch()
    process.wait_for("✔ ")
    assert store.get_jobs([job_id])[0].state is State.SUCCEEDED
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_dev_takes_up_changed_settings_and_goes_on_with_the_old_ones_while_they_cannot_be_read(rota, started):
    settings = rota.folder / "rota.yaml"
    settings.write_text("app: jobs.py\n")
    process = started("dev")
    process.wait_for("ready")
    settings.write_text("app: jobs.py\nlease: soon\n")
    process.wait_for("rota.yaml changed")
    process.wait_for("error: rota.yaml:2: lease: got 'soon'")
    settings.write_text("app: other.py\nlease: 20s\n")
    (rota.folder / "other.py").write_text(GREET)
    process.wait_for("reloaded")
    assert "other.py" in process.wait_for("1 task, 0 schedules")
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_a_target_that_is_broken_from_the_start_ends_with_3(rota, started):
    (rota.folder / "jobs.py").write_text("1 / 0")
    process = started("dev", "jobs.py")
    assert process.end() == 3
    assert "ZeroDivisionError" in process.stderr


def test_the_code_of_a_target_is_beside_its_file_or_in_its_package(rota):
    package = rota.folder / "shop" / "tasks"
    package.mkdir(parents=True)
    (rota.folder / "shop" / "__init__.py").touch()
    assert folder_of("jobs.py:app") == rota.folder
    assert folder_of("shop/tasks/mail.py") == package
    assert folder_of("shop.tasks.mail:app") == rota.folder / "shop"
    assert folder_of("jobs") == rota.folder
    assert folder_of("nowhere") == rota.folder


def test_what_changes_in_the_code_is_noticed_and_the_rest_is_not(rota):
    for name in (".hidden", "venv/lib", "shop"):
        (rota.folder / name).mkdir(parents=True)
    (rota.folder / "venv" / "pyvenv.cfg").touch()
    code = Code(rota.folder)
    for name in (".hidden/a.py", "venv/lib/b.py", "shop/notes.txt"):
        (rota.folder / name).touch()
    assert code.changed() == []
    (rota.folder / "shop" / "c.py").touch()
    (rota.folder / "jobs.py").unlink()
    assert code.changed() == ["jobs.py", "shop/c.py"]
    assert code.changed() == []


def test_settings_are_noticed_wherever_they_are(rota):
    (rota.folder / "shop").mkdir()
    settings = rota.folder / "rota.yaml"
    settings.write_text("lease: 20s\n")
    code = Code(rota.folder / "shop", settings)
    settings.write_text("lease: 30s\n")
    os.utime(settings, ns=(1, 1))
    (rota.folder / "shop" / "rota.yaml").touch()
    assert code.changed() == ["../rota.yaml", "rota.yaml"]
    settings.unlink()
    assert code.changed() == ["../rota.yaml"]


def test_live_lines_are_in_the_timezone_of_the_app(capsys):
    app = App("memory://", tz="Asia/Kolkata")
    noon = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()) * SECOND
    LiveLines(app, shows_tracebacks=False)._show(noon, PRINTED, "", "greet('ann')", "hello")
    assert capsys.readouterr().err.startswith("17:30:00 ")
