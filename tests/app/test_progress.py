"""A running job says how far it is, and everyone can see it while it runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from rota import App, current_job
from rota.testing import Kit, ManualClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_progress_is_seen_while_the_job_runs(kind: str, tmp_path: Path):
    app = App("memory://" if kind == "memory" else f"sqlite:///{tmp_path}/rota.db")
    may_end = threading.Event()

    @app.task(name="walk")
    def walk() -> None:
        current_job.progress(1, 10)
        current_job.progress(3, 10, "halfway up the hill")
        may_end.wait(30)

    seen = threading.Event()
    with app.running(scheduler=False):
        job = walk.enqueue()
        while job.refresh().progress is None:
            seen.wait(0.01)
        assert (job.state, job.progress) == ("running", "3/10 halfway up the hill")
        may_end.set()
        job.result("10s")
        assert job.refresh().progress == "3/10 halfway up the hill"
    app.close()


def test_progress_outside_a_job_is_refused():
    with pytest.raises(LookupError, match="inside a running job"):
        current_job.progress(1, 2)


def test_a_note_in_the_place_of_the_total_is_told():
    app = App("memory://")

    @app.task(retries=0)
    def works() -> None:
        current_job.progress(0.5, "half")  # type: ignore[arg-type]

    with Kit(app, ManualClock()) as kit:
        job = works.enqueue()
        kit.run_due()
        assert "write progress(done, note='half')" in job.refresh().error
