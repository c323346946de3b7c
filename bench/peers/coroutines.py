"""What peers that speak asyncio share: a loop for the caller, and another one in a thread for the worker."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from trial import COROUTINE_PAUSE, Contender, Ran

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop


class AsyncContender(Contender):
    """The caller's loop runs only while a call is made, so that a call costs what it costs a coroutine."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        self.loop = new_event_loop()

    async def run_job(self) -> None:
        """What a job does."""
        if COROUTINE_PAUSE:
            await asyncio.sleep(COROUTINE_PAUSE)
        self.ran()

    def call(self, what: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(what)

    def in_thread(self, worker: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        threading.Thread(target=run, args=(worker,), daemon=True).start()

    def close(self) -> None:
        """The process ends soon."""

    def settle(self) -> None:
        """Poll until nothing is left: these have no signal for it."""
        while self.left():
            pass


def run(worker: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(worker())
