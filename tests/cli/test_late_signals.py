"""A signal is heard even where it does not interrupt the wait of the main thread."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import signal, threading
from rota.cli.stopping import Stopping

stopping = Stopping()
stopping.listen()
gate = threading.Event()
other = threading.Thread(target=gate.wait, daemon=True)
other.start()
# Delivered to another thread, it leaves the main thread's wait alone, as one that comes just before the wait does.
threading.Timer(0.2, lambda: signal.pthread_kill(other.ident, signal.SIGTERM)).start()
assert stopping.news() == signal.SIGTERM
print("heard")
"""


def test_a_signal_that_interrupts_no_wait_is_heard():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30, check=False)
    assert (ran.returncode, ran.stdout) == (0, "heard\n"), ran.stderr
