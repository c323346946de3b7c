"""How late each second's run begins: what every contender is asked for, in a process of its own.

A contender's script calls main() with a function that has `ran(nominal)` called at the first line of each run and
returns at once; the seconds late, and by how much the nominal times stray from their grid, are printed as JSON.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable

PATIENCE = 30  # seconds beyond those asked for

Ran = Callable[[float], None]  # given the time that the run stands for


def main(start: Callable[..., object]) -> None:
    _, folder, count, *options = sys.argv[1:]
    os.chdir(folder)
    print(json.dumps(measure(lambda ran: start(ran, *options), int(count))), flush=True)
    os._exit(0)


def measure(start: Callable[[Ran], object], count: int) -> dict[str, object]:
    late, nominals, done = [], [], threading.Event()

    def ran(nominal: float) -> None:
        late.append(time.time() - nominal)
        nominals.append(nominal)
        if len(late) == count + 1:
            done.set()

    kept = start(ran)  # held until the end
    if not done.wait(count + PATIENCE):
        raise TimeoutError(f"{len(late)} of {count} runs began within {count + PATIENCE} s")
    del kept
    return {"late": late[1 : count + 1], "drift": stray(nominals[1 : count + 1])}  # the first one warms up


def stray(nominals: list[float]) -> float:
    """The furthest that a time lies from where a second for each would put it."""
    return max(abs(nominal - nominals[0] - place) for place, nominal in enumerate(nominals))
