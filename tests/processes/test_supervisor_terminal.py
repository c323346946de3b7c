"""Workers under a parent, typed into a terminal: a Ctrl-C drains once, and a terminal that goes away ends them."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import threading

import pytest
from kill_harness import HANG_LIMIT, HERE, children_of, wait_until

TYPED = "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"


class Terminal:
    """A terminal with one command in its foreground, as a shell starts it."""

    def __init__(self, folder, *words: str) -> None:
        self._keys, screen = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TYPED, str(screen), *words], cwd=folder, pass_fds=[screen], start_new_session=True
        )
        os.close(screen)
        self._shown = bytearray()
        self._is_closing = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def shown(self) -> str:
        return bytes(self._shown).decode()

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.shown or self.process.poll() is not None, text)
        assert text in self.shown, self.shown

    def type(self, keys: bytes) -> None:
        os.write(self._keys, keys)

    def hang_up(self) -> None:
        """The window is closed."""
        self._is_closing.set()
        self._reader.join()  # a read that waits would keep the terminal there
        os.close(self._keys)

    def close(self) -> None:
        for pid in [*children_of(self.process.pid), self.process.pid] if self.process.poll() is None else []:
            os.kill(pid, 9)
        self.process.wait()
        if not self._is_closing.is_set():
            self.hang_up()

    def _read(self) -> None:
        while not self._is_closing.is_set():
            try:
                if select.select([self._keys], [], [], 0.05)[0]:
                    self._shown += os.read(self._keys, 4096)
            except OSError:  # the last process has let go of it
                return


@pytest.fixture
def terminal(tmp_path):
    shutil.copy(HERE / "supervised_app.py", tmp_path)
    terminal = Terminal(tmp_path, "-m", "rota", "worker", "supervised_app.py")
    yield terminal
    terminal.close()


def test_a_ctrl_c_drains_once(terminal):
    terminal.wait_for("started:")
    terminal.type(b"\x03")
    assert terminal.process.wait(HANG_LIMIT) == 130
    terminal.wait_for("SIGINT: stopping")
    assert "told again" not in terminal.shown
    assert "Traceback" not in terminal.shown


def test_a_terminal_that_goes_away_ends_parent_and_workers(terminal):
    terminal.wait_for("started:")
    workers = children_of(terminal.process.pid)
    terminal.hang_up()
    assert terminal.process.wait(HANG_LIMIT) == 0
    assert workers
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)  # noqa: PTH110
