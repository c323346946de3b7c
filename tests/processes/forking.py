"""Work that a test does in a forked process."""

from __future__ import annotations

import faulthandler
import os
import select
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


STUCK_AFTER = 100  # seconds; then the child prints the stacks of its threads and ends with 1


def fork(work: Callable[[], object], forking: Callable[[], int] = os.fork) -> int:
    """Do this in a forked process; its process id."""
    pid = forking()
    if pid == 0:
        code = 1
        faulthandler.dump_traceback_later(STUCK_AFTER, exit=True, file=sys.__stderr__)
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - nothing of the test may go on in the child
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_child(work: Callable[[], object]) -> int:
    """Do this in a forked process, and wait for its end; its exit code."""
    return exit_code(fork(work))


class Turns:
    """Lets two processes take turns."""

    def __init__(self) -> None:
        self._ends = os.pipe()

    def give(self) -> None:
        os.write(self._ends[1], b"!")

    def wait(self) -> None:
        ready, _, _ = select.select([self._ends[0]], [], [], 60)
        if not ready:
            raise TimeoutError("the other process has not given its turn")
        os.read(self._ends[0], 1)
