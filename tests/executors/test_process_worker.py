"""Processes under a real worker: files as targets, scripts, leases, cancelling, deaths, and the worker's own end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from every_store import SERVED, fresh_place
from executors import deeds
from executors.bench import exists, is_alive, pid_in, until
from rota import App, JobFailed
from rota.app import internals
from rota.cli.run import load
from rota.cli.target import load_target
from rota.model.micros import SECOND
from rota.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

PATIENT = "15s"
JOBS = """
import logging, os, sys
from pathlib import Path
from threading import Event
from rota import App, current_job

logging.basicConfig(level=logging.INFO)
print("imported")
app = App("sqlite:///jobs.db")

@app.task(executor="process", retries=0)
def where():
    logging.getLogger("shop").info("noted")
    return [__name__, os.getpid()]

@app.task(executor="process", retries=0)
def enqueue_another():
    return plain.enqueue(20).id

@app.task
def plain(number):
    return number + 1

@app.task(executor="process", retries=0)
def hang(path):
    Path(path + ".new").write_text(str(os.getpid()))
    Path(path + ".new").rename(path)
    Event().wait()

if os.getppid() != {parent}:
    del hang.sender.registry._tasks[hang.name], hang
    {in_child}
{tail}
"""
GUARDED = """
if __name__ == "__main__":
    job = where.enqueue()
    with app.running(concurrency=1):
        print("result", job.result(timeout="15s")[0])
"""


@pytest.fixture
def a_file(tmp_path, monkeypatch):
    """A file of jobs in its own folder; its module is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(in_child: str = "pass", tail: str = "", name: str = "filed_jobs.py") -> Path:
        path = tmp_path / name
        loader = os.getpid() if tail else os.getppid()  # the parent of the process that loads it first
        path.write_text(JOBS.format(parent=loader, in_child=in_child, tail=tail))
        return path

    yield write
    sys.modules.pop("filed_jobs", None)


@contextmanager
def running(app: App, **options):
    try:
        with app.running(concurrency=2, drain="1s", **options):
            yield
    finally:
        app.close()


@contextmanager
def on_a_fresh_store():
    """The deeds' app, at work on a store that no other test has used."""
    deeds.app.close()
    internals(deeds.app).store.use(MemoryStore())
    with running(deeds.app):
        yield deeds.app


@pytest.fixture
def deeds_app():
    with on_a_fresh_store() as app:
        yield app


@pytest.mark.usefixtures("deeds_app")
def test_threads_and_processes_work_side_by_side():
    assert deeds.in_a_thread.enqueue().result(timeout=PATIENT) == os.getpid()
    assert deeds.who.enqueue().result(timeout=PATIENT) != os.getpid()


def test_three_deaths_park_the_job(deeds_app):
    job = deeds.exits.enqueue(9)
    with pytest.raises(JobFailed, match=r"kept as failed: 3 processes died .* exited by itself with exit code 9"):
        job.result(timeout=PATIENT)
    lines = [line.text for line in deeds_app.jobs.logs(job.id)]
    assert lines == ["about to go"] * 3


def test_a_cancelled_job_is_stopped(deeds_app, tmp_path):
    job = deeds.hangs.enqueue(str(tmp_path / "word"))
    pid_in(tmp_path / "word")
    deeds_app.jobs.cancel(job.id, reason="not wanted")
    until(lambda: deeds_app.jobs.get(job.id).state == "cancelled")


def test_leases_go_on_while_a_child_holds_its_interpreter(monkeypatch):
    settings = msgspec.structs.replace(deeds.app.settings, lease=SECOND)
    monkeypatch.setattr(type(internals(deeds.app)), "settings", settings)
    with on_a_fresh_store() as app:
        job = deeds.holds_the_interpreter.enqueue()
        assert job.result(timeout=PATIENT) == 1
        record = app.jobs.get(job.id).record
        assert (record.attempts, record.deaths, record.lease_no) == (1, 0, 1)


def test_a_worker_that_stops_takes_its_children_along(tmp_path):
    with on_a_fresh_store():
        deeds.hangs.enqueue(str(tmp_path / "word"))
        child = pid_in(tmp_path / "word")
    assert not exists(child)


# Files and scripts.


def test_a_file_target_is_loaded_in_the_child_as_the_command_line_loads_it(a_file):
    app = load_target(str(a_file())).app
    with running(app):
        job = internals(app).registry.get("where").enqueue()
        name, pid = job.result(timeout=PATIENT)
        assert (name, pid != os.getpid()) == ("filed_jobs", True)
        until(lambda: list(app.jobs.logs(job.id)))
        assert [(line.level, line.text) for line in app.jobs.logs(job.id)] == [("info", "noted")]


@pytest.mark.parametrize("kind", ["sqlite", *[kind for kind in SERVED if kind == "redis"]])
def test_what_a_task_enqueues_goes_to_the_store_of_the_command_line(a_file, tmp_path, kind, monkeypatch):
    folder = tmp_path / "other"
    folder.mkdir()
    place = fresh_place(kind, folder)
    monkeypatch.setenv("ROTA_NAMESPACE", place.namespace)
    app = load(str(a_file()), place.url, needs_tasks=True).app
    with running(app):
        other = internals(app).registry.get("enqueue_another").enqueue().result(timeout=PATIENT)
        assert app.jobs.get(other).result(timeout=PATIENT) == 21
    assert not (tmp_path / "jobs.db").exists()


def test_a_task_that_the_child_does_not_find_fails_clearly(a_file):
    app = load_target(str(a_file())).app
    with running(app), pytest.raises(JobFailed, match=r"filed_jobs.py was loaded .* no app in it has a task named"):
        internals(app).registry.get("hang").enqueue("x").result(timeout=PATIENT)


def test_a_module_that_the_child_cannot_import_fails_clearly(a_file):
    app = load_target(str(a_file(in_child="raise RuntimeError('not here')"))).app
    with (
        running(app),
        pytest.raises(JobFailed, match=r"filed_jobs.where cannot be loaded from .*RuntimeError: not here"),
    ):
        internals(app).registry.get("where").enqueue().result(timeout=PATIENT)


def test_a_timeout_starts_when_the_task_does(a_file):
    """A fresh child takes its time to start and to import; that is not the task's."""
    app = load_target(str(a_file(in_child="Event().wait(1.5)"))).app
    with running(app):
        job = internals(app).registry.get("where").using(timeout="1s").enqueue()
        assert job.result(timeout=PATIENT)[0] == "filed_jobs"


def run_script(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, path.name], cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_script_is_not_run_again_in_its_children(a_file):
    process = run_script(a_file(tail=GUARDED, name="filed_script.py"))
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert out == "imported\nresult filed_script\n"


def test_a_script_that_starts_its_worker_unguarded_is_told_so(a_file):
    process = run_script(a_file(tail=GUARDED.replace('"__main__"', "__name__"), name="filed_script.py"))
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "guard that with `if __name__ == '__main__':`" in err


def test_killing_the_worker_takes_its_children_along(a_file, tmp_path):
    tail = f"""
if __name__ == "__main__":
    hang.enqueue({str(tmp_path / "word")!r})
    with app.running(concurrency=1):
        Event().wait()
"""
    path = a_file(tail=tail, name="filed_script.py")
    path.write_text(path.read_text().replace("del hang.sender", "if False: del hang.sender"))
    process = run_script(path)
    child = pid_in(tmp_path / "word")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    until(lambda: not is_alive(child))


def test_progress_of_a_child_is_kept(deeds_app):
    job = deeds.walks.enqueue()
    job.result("30s")
    assert deeds_app.jobs.get(job.id).progress == "2/5 on its way"
