"""The threads of a queue end with it, also if no caller stops it."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from queue_stage import a_queue, document, wait_for


@pytest.mark.parametrize("how", ["its handler stops it", "on_start fails"])
def test_no_thread_outlives_a_queue_that_no_caller_stops(how):
    before = set(threading.enumerate())

    async def begin():
        if how == "on_start fails":
            raise ValueError("not today")

    async def work(_document, queue):
        queue.stop()

    queue = a_queue([document()], work, on_start=begin)
    with suppress(ValueError):
        queue.start()
    wait_for(lambda: not [one for one in set(threading.enumerate()) - before if one.name.startswith("rota-")])
