"""What every scheduler is asked to do with many schedules, in a process of its own.

A contender's script calls main() with its class and prints, as JSON, the seconds of a step. Interpreters of other
environments import this, so the standard library must do.
"""

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from statistics import median

ADDED = 200  # of the schedules are added in the way, and as durably, as it comes; the rest untimed
WAKE_FOR = 0.5  # seconds


class Timetable(ABC):
    """A scheduler in the current folder."""

    @abstractmethod
    def add(self, start: int, stop: int) -> None:
        """Add schedules of these numbers, which are far from due, the fastest way there is."""

    @abstractmethod
    def add_due(self, count: int) -> None:
        """Add schedules that are due now, once."""

    @abstractmethod
    def wake(self) -> None:
        """Look for what is due; nothing is."""

    @abstractmethod
    def fire(self) -> int:
        """Fire all that is due; how many."""

    def fill(self, start: int, stop: int) -> None:
        """Add schedules, untimed."""
        self.add(start, stop)


def main(make: Callable[[], Timetable]) -> None:
    scenario, folder, count = sys.argv[1:]
    os.chdir(folder)
    print(json.dumps(SCENARIOS[scenario](make(), int(count))), flush=True)
    os._exit(0)


def idle(timetable: Timetable, count: int) -> dict[str, float]:
    """Adding one, and a wake-up where none of so many is due."""
    timed = min(ADDED, count)
    if count > timed:
        timetable.fill(timed, count)
    begun = time.perf_counter()
    timetable.add(0, timed)
    added = (time.perf_counter() - begun) / timed
    timetable.wake()  # the first look may read everything
    return {"add": added, "seconds": median(wakes(timetable))}


def bulk(timetable: Timetable, count: int) -> dict[str, float]:
    """Adding many at once."""
    timetable.add(0, 1)
    begun = time.perf_counter()
    timetable.add(1, count + 1)
    return {"seconds": (time.perf_counter() - begun) / count}


def firing(timetable: Timetable, count: int) -> dict[str, float]:
    """So many are due at once, and are fired."""
    timetable.add_due(count)
    begun = time.perf_counter()
    fired = timetable.fire()
    if fired != count:
        raise AssertionError(f"{fired} of {count} were fired")
    return {"seconds": (time.perf_counter() - begun) / count}


def wakes(timetable: Timetable) -> list[float]:
    times, until = [], time.perf_counter() + WAKE_FOR
    while time.perf_counter() < until or len(times) < 3:
        begun = time.perf_counter()
        timetable.wake()
        times.append(time.perf_counter() - begun)
    return times


SCENARIOS = {"idle": idle, "bulk": bulk, "firing": firing}
