"""Reads single keys from a terminal as they are pressed, and restores the terminal afterwards."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """Gives a function that waits for a key, so many seconds at most; "" if none was pressed."""
    if not sys.stdin.isatty():
        yield _wait_alone
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)  # keys come at once, and Ctrl-C is still a signal
    try:
        yield lambda seconds: _pressed(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _wait_alone(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _pressed(descriptor: int, seconds: float) -> str:
    ready, _, _ = select.select([descriptor], [], [], seconds)
    if not ready:
        return ""
    typed = os.read(descriptor, 64)
    return typed.decode("utf-8", "replace") if typed else "q"  # the terminal is gone: nobody looks any more
