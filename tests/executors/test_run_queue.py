"""A queue of runs: no slot waits while there is work, and no more slots are woken than are needed."""

from __future__ import annotations

import threading

import pytest

from amounts import PATIENCE
from rota.engine.executors.threads import RunQueue

SLOTS = 8


class Crew:
    """Slots that take what is in the queue, as a worker's do. Runs are plain callables here."""

    def __init__(self, slots=SLOTS):
        self.queue = RunQueue(self._grow)
        self.threads = []
        self.taken_by = {}
        self._slots = slots

    def _grow(self):
        if len(self.threads) >= self._slots:
            return False
        self.threads.append(threading.Thread(target=self._work, daemon=True))
        self.threads[-1].start()
        return True

    def _work(self):
        self.queue.join()
        while (run := self.queue.take()) is not None:
            self.taken_by[run] = threading.get_ident()
            run()

    def end(self):
        self.queue.close()
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.fixture
def crew():
    crew = Crew()
    yield crew
    crew.end()


def test_runs_that_block_get_a_slot_each(crew):
    everyone = threading.Barrier(SLOTS)
    begun = [threading.Event() for _ in range(SLOTS)]
    for event in begun:
        crew.queue.put(lambda event=event: (everyone.wait(PATIENCE), event.set()))
    assert all(event.wait(PATIENCE) for event in begun)  # the barrier opens only when all run at the same time
    assert len(crew.threads) == SLOTS


def test_slots_that_slept_are_woken_for_runs_that_block(crew):
    for _ in range(50):
        everyone = threading.Barrier(SLOTS + 1)
        for _ in range(SLOTS):
            crew.queue.put(lambda everyone=everyone: everyone.wait(PATIENCE))
        everyone.wait(PATIENCE)


def test_every_run_is_taken_once_by_somebody(crew):
    left = threading.Semaphore(0)
    count = 5_000
    for number in range(count):
        crew.queue.put(lambda number=number: (number, left.release()))
    assert all(left.acquire(timeout=PATIENCE) for _ in range(count))
    assert not left.acquire(blocking=False)


def test_what_was_put_before_the_end_is_still_done():
    crew = Crew(slots=1)
    gate, done = threading.Event(), []
    crew.queue.put(lambda: gate.wait(PATIENCE))
    for number in range(3):
        crew.queue.put(lambda number=number: done.append(number))
    crew.queue.close()
    gate.set()
    crew.end()
    assert done == [0, 1, 2]


def test_a_slot_that_waits_in_vain_is_told_so():
    queue = RunQueue(lambda: False)
    assert queue.take(0.001) is None
    queue.put(str)
    assert queue.take(0.001) is str
