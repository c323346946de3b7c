"""A task in a thread that ends the whole process: the next worker finds the job, and three deaths park it."""

from __future__ import annotations

import subprocess
import sys

from rota import App

WORKER = """
import os
from rota import App

app = App("sqlite:///sudden.db", lease="1s")

@app.task(name="leave", retries=0)
def leave():
    os._exit(3)

@app.task(name="stay", retries=0)
def stay():
    return "here"

if __name__ == "__main__":
    with app.running(scheduler=False, concurrency=1):
        for job in app.jobs.list().items:
            app.jobs.wait(job.id, "20s")
"""


def test_os_exit_in_a_thread_is_a_death_and_spends_no_retry(tmp_path):
    (tmp_path / "sudden_jobs.py").write_text(WORKER)
    app = App(f"sqlite:///{tmp_path}/sudden.db", lease="1s")
    leave = app.task(name="leave", retries=0)(lambda: None).enqueue()
    stay = app.task(name="stay", retries=0)(lambda: None).enqueue()
    codes = []
    while 0 not in codes:
        assert len(codes) < 6
        ran = subprocess.run([sys.executable, "sudden_jobs.py"], cwd=tmp_path, timeout=240, check=False)
        codes.append(ran.returncode)
    assert codes == [3, 3, 3, 0]
    assert (leave.state, leave.attempts, leave.record.deaths) == ("failed", 0, 3)
    assert leave.error.startswith("kept as failed: 3 workers died while they ran this job")
    assert stay.result("1s") == "here"
    app.close()
