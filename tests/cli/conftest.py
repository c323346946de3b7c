from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.processes import PATIENCE, Started
from rota.cli.main import main
from rota.cli.target import load_target
from rota.store.sqlite import SqliteStore

sys.path.append(str(Path(__file__).parents[1] / "processes"))  # for processes that start without importing

JOBS = '''
import os
import time
from pathlib import Path

from rota import App, cron, every

app = App()


@app.task
def greet(name: str, times: int = 1):
    return name.upper() * times


@app.task(retries=0)
def divide(a, b):
    return a / b


@app.task(queue="mail", priority=10)
def send(to: str):
    return {"sent": to}


@app.task
def hold(gate: str):
    """Says that it runs, past its log, and runs until a file is there."""
    os.write(2, b"holding\\n")
    while not Path(gate).exists():
        time.sleep(0.01)


@app.schedule(cron("0 9 * * mon-fri", tz="America/New_York"), description="The morning report")
def report(): ...


@app.schedule(every("1s"), enabled=False)
def tick(): ...
'''


class Shell:
    """Types commands into a folder, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, code: int = 0, **options):
        alone = ["--processes", "0"] if words[:1] in {("run",), ("worker",)} else []  # a parent would replace pytest
        result = CliRunner().invoke(main, [*words, *alone], prog_name="rota", **options)
        assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
        return result

    def data(self, *words: str):
        return json.loads(self(*words, "-o", "json").stdout)

    def enqueue(self, *words: str) -> str:
        return self("enqueue", *words, "--app", "jobs.py").stdout.strip()

    def work(self) -> None:
        """Have a worker in this process do what is ready."""
        app = load_target("jobs.py").app
        node = app.start(scheduler=False, queues=["default", "mail"])
        assert node.worker.is_idle.wait(PATIENCE)
        app.close()

    def forget(self) -> None:
        """Have the next command load the file anew."""
        del sys.modules["jobs"]

    def sync(self) -> None:
        """Make the store and its schedules, as a first start does."""
        app = load_target("jobs.py").app
        app.schedules.sync()
        app.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project of one file, and the current folder."""
    (tmp_path / "jobs.py").write_text(JOBS)
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in list(os.environ):
        if name.startswith("ROTA_"):
            monkeypatch.delenv(name)
    yield tmp_path
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def rota(folder):
    return Shell(folder)


@pytest.fixture
def started(folder):  # noqa: ARG001 - commands run in it
    """Starts commands as processes; none outlives its test."""
    running: list[Started] = []

    def start(*words: str, **options) -> Started:
        running.append(Started(*words, **options))
        return running[-1]

    yield start
    for process in running:
        process.close()


@pytest.fixture
def store(folder):
    """The project's store, seen from outside."""
    store = SqliteStore(folder / ".rota" / "rota.db")
    store.open()
    yield store
    store.close()
