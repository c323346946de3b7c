"""A signal is heard at any time: before a service has begun, and where it does not interrupt a wait."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.processes import wait_until

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
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout) == (0, "heard\n"), ran.stderr


def blocks(pid: int, number: int) -> bool:
    """Whether a process lets this signal wait, as it does from its first moment."""
    mask = re.search(r"^SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return mask is not None and bool(int(mask[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("command", ["scheduler --app jobs.py", "web --app jobs.py --port 0", "dev jobs.py --port 0"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_that_still_loads_ends_quietly(started, command, number):
    service = started(*command.split())
    wait_until(lambda: blocks(service.process.pid, number))
    service.signal(number)
    assert service.end() == 0
    assert "Traceback" not in service.stderr
