"""How many files of Rota a job passes, from its enqueuing to its history: a reader who follows it opens that many."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import rota
from engine.stage import PATIENCE
from rota import App
from rota.app import internals
from rota.engine.node import Node
from rota.engine.services import NodeSettings

ROOT = f"{Path(rota.__file__).parent}/"
MOST = 35  # the goal is 28: the SQLite store has 11 of them, and what stores share 4
MOST_OUTSIDE_STORES = 20
MOST_OF_ENGINE = 7


@contextmanager
def traced():
    """The files of Rota whose functions run, in this thread and in those that are started here."""
    files: set[str] = set()

    def note(frame, _event, _argument):
        if frame.f_code.co_filename.startswith(ROOT):
            files.add(frame.f_code.co_filename.removeprefix(ROOT))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


@pytest.fixture
def app(tmp_path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.open()
    yield app
    app.close()


def test_a_job_passes_few_files_from_enqueue_to_history(app):
    @app.task(name="greet", retries=3)
    def greet(name: str) -> str:
        return name.upper()

    inside = internals(app)
    worker = Node(app.open(), inside.registry, inside.events, NodeSettings(scheduler=False)).worker

    def walk(name: str) -> list[str]:
        job = greet.enqueue(name)
        worker.turn()
        while worker.runs:
            assert worker._event.wait(PATIENCE), "the job never ended"
            worker.turn()
        return [line.state for line in app.jobs.history(job.id)]

    with traced() as files:
        walk("first")  # which starts threads, and fills caches
        files.clear()
        assert walk("second") == ["queued", "running", "succeeded"]
    worker.close()
    shown = "\n".join(sorted(files))
    assert len({file for file in files if file.startswith("engine/")}) <= MOST_OF_ENGINE, shown
    assert len({file for file in files if not file.startswith("store/")}) <= MOST_OUTSIDE_STORES, shown
    assert len(files) <= MOST, shown
    assert {"engine/worker/exchange_client.py", "store/shared/parts.py", "model/jobs/settle.py"} <= files, shown
