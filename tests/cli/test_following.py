"""jobs logs --follow as a real process: lines come while the job runs, and it ends with the job."""

from __future__ import annotations

import subprocess
import sys

from cli.processes import PATIENCE, environment
from rota.model.jobs.job import State

TALKS = """
import time
from pathlib import Path
from rota import App

app = App()


@app.task(retries=0)
def talks(gate: str):
    for number in range(250):
        print("before", number)
    while not Path(gate).exists():
        time.sleep(0.01)
    print("after")
"""


def test_lines_are_followed_while_the_job_runs(rota, store, started):
    (rota.folder / "jobs.py").write_text(TALKS)
    job_id = rota.enqueue("talks", "gate")
    started("run", "jobs.py")
    follower = subprocess.Popen(
        [sys.executable, "-m", "rota", "jobs", "logs", "-f", job_id],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(PYTHONUNBUFFERED="1"),
    )
    try:
        early = [follower.stdout.readline() for _ in range(250)]  # blocks until they are there
        assert [line.split("info    ")[1] for line in early] == [f"before {number}\n" for number in range(250)]
        assert store.get_jobs([job_id])[0].state is State.RUNNING
        (rota.folder / "gate").touch()
        assert follower.stdout.readline().endswith("info    after\n")
        assert follower.stdout.readline() == ""
        assert follower.wait(PATIENCE) == 0
    finally:
        follower.kill()
        follower.wait()
        follower.stdout.close()
