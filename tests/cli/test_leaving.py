"""A service ends when it is told to: however early that comes, and whatever its jobs have left behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cli.processes import wait_until

LEAVES = """
import atexit, os, threading
from rota import App

app = App()
atexit.register(print, "exit handlers ran")


@app.task
def leave_a_thread():
    threading.Thread(target=threading.Event().wait, name="left-behind", daemon=False).start()
    os.write(2, b"one is left\\n")


@app.task
def leave_a_pool():
    from concurrent.futures import ThreadPoolExecutor
    app.pool = ThreadPoolExecutor()
    app.pool.submit(print).result()
"""
SLOW = """
import os, time
from pathlib import Path
from rota import App

app = App()
app.task(name="x")(print)
Path("loading").write_text(str(os.getpid()))
while not Path("gate").exists():
    time.sleep(0.01)
"""
ALONE = ("--processes", "0")


@pytest.fixture(autouse=True)
def site(folder):
    (folder / "leaves.py").write_text(LEAVES)
    (folder / "slow.py").write_text(SLOW)
    return folder


def heeds(started, number):
    """Whether signals wait, or are caught: then nothing happens by default."""
    status = Path(f"/proc/{started.process.pid}/status").read_text()
    masks = {
        name: int(value, 16)
        for name, _, value in (line.partition(":\t") for line in status.splitlines())
        if name in {"SigBlk", "SigCgt"}
    }
    return (masks["SigBlk"] | masks["SigCgt"]) >> (number - 1) & 1


@pytest.mark.parametrize("options", [ALONE, ()], ids=["alone", "supervised"])
def test_a_thread_that_a_job_left_behind_keeps_no_process(rota, started, options):
    rota("enqueue", "leaves.leave_a_thread", "--app", "leaves.py")
    service = started("run", "leaves.py", *options)
    service.wait_for("one is left")
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    assert "a thread that a job has left behind is still running: left-behind" in service.stderr
    assert "exit handlers ran" in service.stdout


def test_threads_of_a_pool_end_as_python_ends_them(rota, started):
    rota("enqueue", "leaves.leave_a_pool", "--app", "leaves.py")
    service = started("worker", "leaves.py", *ALONE, "--until-empty")
    assert service.end() == 0
    assert "left behind" not in service.stderr
    assert "exit handlers ran" in service.stdout


@pytest.mark.parametrize(
    "words", [("run",), ("run", *ALONE), ("worker",), ("worker", *ALONE), ("scheduler",)], ids=" ".join
)
def test_a_signal_that_comes_while_the_command_starts_ends_it_well(started, words):
    service = started(words[0], "jobs.py", *words[1:])
    wait_until(lambda: heeds(service, signal.SIGTERM))
    service.signal(signal.SIGTERM)
    assert service.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("run", *ALONE), ("scheduler",)], ids=" ".join)
def test_a_signal_that_comes_while_the_target_is_loaded_ends_it_at_once(site, started, words, number):
    service = started(words[0], "slow.py", *words[1:])
    wait_until((site / "loading").exists)
    service.signal(number)
    assert service.end() == 0
    assert "Traceback" not in service.stderr


def test_a_worker_that_is_still_loading_ends_with_its_parent(site, started):
    service = started("run", "slow.py")
    wait_until((site / "loading").exists)
    service.signal(signal.SIGTERM)
    assert service.end() == 0
    assert "killed by signal" not in service.stderr


def test_a_hangup_while_a_parent_starts_is_no_end(rota, started):
    service = started("run", "jobs.py")
    wait_until(lambda: heeds(service, signal.SIGHUP))
    service.signal(signal.SIGHUP)
    job = rota.enqueue("greet", "ann")
    wait_until(lambda: rota.data("jobs", "show", job)["state"] == "succeeded")
    service.signal(signal.SIGTERM)
    assert service.end() == 0


def test_a_hangup_drains_a_service_without_a_parent(site, rota, started):
    gate = site / "gate"
    job = rota.enqueue("hold", str(gate))
    service = started("run", "jobs.py", *ALONE)
    service.wait_for("holding")
    service.signal(signal.SIGHUP)
    service.wait_for("SIGHUP: waiting up to 25 s for 1 running")
    gate.touch()
    assert service.end() == 0
    assert rota.data("jobs", "show", job)["state"] == "succeeded"
