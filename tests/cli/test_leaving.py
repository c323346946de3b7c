"""A process ends with its code although a job has left a thread behind, whatever has become of its streams."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import logging
import sys
import threading
import time

from rota.cli import leaving

leaving.THREADS_END_WITHIN = 0.01


class Broken:
    def write(self, text):
        return len(text)

    def flush(self):
        raise BrokenPipeError


class Failing(logging.Handler):
    def emit(self, record):
        raise OSError("no log")


threading.Thread(target=time.sleep, args=(30,)).start()
{lines}
leaving.watch_exit(7)
"""


@pytest.mark.parametrize(
    "lines",
    [
        "sys.stdout.write('all the same')",
        "sys.stdout.write('all the same'); sys.stderr = Broken()",
        "sys.stdout = Broken()",
        "sys.stdout = sys.stderr = None",
        "sys.stdout.write('all the same'); sys.stdout.flush(); logging.getLogger().addHandler(Failing())",
    ],
)
def test_a_process_ends_with_its_code_whatever_has_become_of_its_streams(lines):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{lines}", lines)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 7
    assert ("all the same" in lines) == (done.stdout == "all the same")
