"""Commands as real processes whose output can be waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from amounts import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable


def environment(**extra: str) -> dict[str, str]:
    """What a process sees: nothing of the tests' own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "COV_"))}
    return {**kept, "NO_COLOR": "1", **extra}


def wait_until(is_true: Callable[[], object]) -> None:
    """Ask, for instance a store, until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)  # another process sends no signal here; asking without a pause would keep it from its work


class Started:
    """`python -m rota …`, with its lines collected as they come."""

    def __init__(self, *words: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rota", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**(env or {})),
        )
        self.lines: list[str] = []
        self._came = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str) -> str:
        """The first line on stderr that has the text."""
        with self._came:
            self._came.wait_for(lambda: self._find(text) is not None or self._is_over, timeout=PATIENCE)
            found = self._find(text)
        assert found is not None, f"no line has {text!r}:\n{self.stderr}"
        return found

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        return code

    def close(self) -> None:
        """With its own children: they keep its output open."""
        if self.process.poll() is None:
            children = self.children
            self.process.kill()
            for pid in children:
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def children(self) -> list[int]:
        """The processes that it has started and that are still there."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    @property
    def stderr(self) -> str:
        return "\n".join(self.lines)

    @property
    def stdout(self) -> str:
        """All of it, once the process has ended."""
        return self.process.stdout.read()

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._came:
                self.lines.append(line.rstrip("\n"))
                self._came.notify_all()
        with self._came:
            self._is_over = True
            self._came.notify_all()

    def _find(self, text: str) -> str | None:
        return next((line for line in self.lines if text in line), None)
