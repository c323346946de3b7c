"""A process of a take-over, to be killed: a node of `rota_site`, or a `rota import` that stops at a named point.

Usage: python take_over_child.py node | command POINT|- WORD…
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from rota_site import app

from rota import failpoints
from rota.cli.main import main as rota


def node() -> None:
    """Run a worker and a scheduler until the process is ended."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    app.start(concurrency=2)
    sys.stdout.write("running\n")
    sys.stdout.flush()
    stop.wait()
    app.stop()
    app.close()


def command(point: str, words: list[str]) -> None:
    """Say each point that it passes. At POINT it kills itself."""

    def pass_point(name: str) -> None:
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.install(pass_point)
    rota(["import", "django-celery-beat", os.environ["BEAT_DATABASE"], "--app", "rota_site.py", *words])


if __name__ == "__main__":
    node() if sys.argv[1] == "node" else command(sys.argv[2], sys.argv[3:])
