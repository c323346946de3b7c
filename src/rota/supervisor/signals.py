"""Collects signals so that a poll can wait for them."""

from __future__ import annotations

import os
import signal

from rota.supervisor.plan import HANDLED


class Signals:
    """Python writes each signal's number into a pipe. The handlers do nothing, so no signal can come at a bad time."""

    def __init__(self) -> None:
        self.pipe, wakes = os.pipe()
        for descriptor in (self.pipe, wakes):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in (*HANDLED, signal.SIGCHLD):
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:  # nohup ignores SIGHUP
                signal.signal(number, lambda _number, _frame: None)
        self._had_terminal = _has_terminal()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

    def take(self) -> list[int]:
        try:
            numbers = list(os.read(self.pipe, 4096))
        except BlockingIOError:
            return []
        return [self._meant(number) for number in numbers]

    def _meant(self, number: int) -> int:
        """A SIGHUP because the terminal was closed means stop, as SIGTERM does."""
        has_hung_up = number == signal.SIGHUP and self._had_terminal and not _has_terminal()
        return signal.SIGTERM if has_hung_up else number


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
