"""Handles signals that come before a service can act on them.

They are blocked from the process's first moment. A parent process takes them over as they are: they wait for it through
its exec. A service without a parent ends quietly while it still loads. Every other command has the system's own way.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, NoReturn

from rota.supervisor.plan import HANDLED

if TYPE_CHECKING:
    from types import FrameType


class EndedEarly(BaseException):
    """A signal asked a service to end before it had begun. No target may catch it: it is no SystemExit of its own."""


def hold() -> None:
    """Let signals wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)


def release() -> None:
    """Let signals have their default effect."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)


def heed() -> None:
    """Let them end a service that has not begun yet; nothing has to be drained."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    release()


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise EndedEarly
