"""The app whose processes are killed. Everything that it does is written into its folder, by appending whole lines."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

from rota import App, current_job, every
from rota.app import internals
from rota.engine.executors.run import current_run
from rota.model.jobs.retry import Backoff
from rota.model.micros import datetime_of
from rota.model.schedules.schedule import Origin
from rota.operations.specs import make_spec
from rota.store.mongo import connection

LEASE = "KILLABLE_LEASE"  # the environment says how long a lease is, …
STORE = "KILLABLE_STORE"  # … and where the store is, and in which namespace
NAMESPACE = "KILLABLE_NAMESPACE"
PATIENCE = "KILLABLE_PATIENCE"  # seconds for which a client of MongoDB waits; the machine may be busy


def be_patient(seconds: float) -> None:
    """Let clients of MongoDB that open from now on wait this long, for an answer and for a connection."""
    connection.DEADLINE = seconds
    connection.CONNECT_WITHIN = int(seconds * 1000)


def build(folder: Path, lease: str, url: str, namespace: str) -> App:
    """The app with a folder of its own for its notes. Building it touches nothing."""
    app = App(url, name="killable", lease=lease, namespace=namespace)

    def note_run() -> None:
        run = current_run()
        note(folder, "ran", run.job.id, run.job.lease_no)

    @app.task(name="quick")
    def quick(number: int = 0) -> int:
        note_run()
        return number

    @app.task(name="flaky", retries=2, backoff=Backoff(first=100_000, factor=1.0))
    def flaky() -> None:
        note_run()
        if current_job.attempt <= 2:
            raise RuntimeError("not yet")

    @app.task(name="slow")
    def slow(seconds: float) -> None:
        note_run()
        threading.Event().wait(seconds)

    @app.task(name="gated")
    def gated(gate: str) -> None:
        """Runs until a file appears, whatever it is told."""
        note_run()
        wait_for_gate(folder / gate)

    @app.task(name="gated_in_its_process")
    def gated_in_its_process() -> None:
        """As gated, with a gate for each process."""
        note_run()
        wait_for_gate(folder / f"gate-{os.getpid()}")

    @app.task(name="deadly", retries=0)
    def deadly() -> None:
        note_run()
        os.kill(os.getpid(), signal.SIGKILL)

    return app


def put_schedules(app: App, seconds: int) -> None:
    """Two schedules that fire every second, for so many seconds. One call puts both, so that they are due together."""
    tasks, end = internals(app).registry, datetime_of(app.open().now()) + timedelta(seconds=seconds)
    specs = [
        (name, make_spec(every("1s"), job, overlap=overlap, end=end))
        for name, job, overlap in (
            ("tick", tasks.find("quick").job(), "allow"),
            ("line", tasks.find("slow").job(0.3), "queue"),
        )
    ]
    app.schedules.register(specs, Origin())


def put_crowd(app: App, number: int, seconds: int) -> None:
    """So many schedules that fire every second, for so many seconds."""
    job, end = internals(app).registry.find("quick").job(), datetime_of(app.open().now()) + timedelta(seconds=seconds)
    app.schedules.put_many(((f"crowd-{n}", job, every("1s")) for n in range(number)), overlap="allow", end=end)


def note(folder: Path, name: str, *words: object) -> None:
    """Append one line to a file; a line is there whole, or not at all, whichever process dies."""
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
    finally:
        os.close(descriptor)


def wait_for_gate(gate: Path) -> None:
    while not gate.exists():
        threading.Event().wait(0.02)


if PATIENCE in os.environ:  # in a process that was started to be killed
    be_patient(float(os.environ[PATIENCE]))
app = build(Path.cwd(), os.environ[LEASE], os.environ[STORE], os.environ[NAMESPACE]) if STORE in os.environ else None
