"""Makes a process end when its work is done, even if its jobs have left threads or processes behind.

Python waits at its end for every thread that is no daemon, and for its exit handlers. A job that leaves such a thread,
or a process that its handlers wait for, would keep a stopped worker alive until somebody kills it.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from contextlib import suppress

log = logging.getLogger("rota.cli")

THREADS_END_WITHIN = 2.0  # seconds; idle threads of a pool end at once
HANDLERS_END_WITHIN = 5.0  # seconds for functions that were registered with atexit


def watch_exit(code: int) -> None:
    """The process is about to end with this code: see that it does. Called in the main thread, as its last step."""
    threading.Thread(target=_end_in_time, args=(code,), name="rota-exit", daemon=True).start()


def _end_in_time(code: int) -> None:
    try:
        _wait_for_the_rest()
    finally:
        os._exit(code)  # also if a stream is closed, broken or missing, or a log handler fails


def _wait_for_the_rest() -> None:
    left = _left_after(THREADS_END_WITHIN)
    if left:
        log.warning(
            "%s still running: %s. The process ends without %s; a job should end the threads that it starts, or make "
            "them daemons",
            "a thread that a job has left behind is" if len(left) == 1 else "threads that jobs have left behind are",
            ", ".join(sorted(thread.name for thread in left)),
            "it" if len(left) == 1 else "them",
        )
        handlers = threading.Thread(target=atexit._run_exitfuncs, name="rota-atexit", daemon=True)  # noqa: SLF001
        handlers.start()
        handlers.join(HANDLERS_END_WITHIN)
    else:
        threading.Event().wait(HANDLERS_END_WITHIN)  # the process ends meanwhile, unless a handler does not
        log.warning("functions registered with atexit still run after %g s: the process ends", HANDLERS_END_WITHIN)
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the reader of one may be gone: the other is flushed all the same
            stream.flush()


def _left_after(seconds: float) -> list[threading.Thread]:
    """The threads that Python waits for, once they have had some time."""
    deadline = time.monotonic() + seconds
    left = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread for thread in left if thread.is_alive()]
