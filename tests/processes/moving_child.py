"""A process that moves a store and may die on the way: `python moving_child.py FROM NS TO NS [POINT NTH]`."""

from __future__ import annotations

import os
import signal
import sys

from rota import failpoints
from rota.model.micros import SECOND
from rota.operations import copy
from rota.store.urls import store_from_url

POINTS = (
    "target.sealing",  # the source is sealed already
    "wait",
    "copy",
    "check",
    "target.opening",  # the source is marked as moved already
    "load.before_commit",  # on stores that have such a point
    "load.after_commit",
)


class Trap:
    """Kills its own process when a point is reached for the nth time."""

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._left = nth

    def __call__(self, point: str) -> None:
        if point != self._point:
            return
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def main(source_url: str, source_ns: str, target_url: str, target_ns: str, point: str = "", nth: str = "0") -> None:
    trap = Trap(point, int(nth))
    failpoints.install(trap)
    copy.BATCH = 5
    source, target = store_from_url(source_url, namespace=source_ns), store_from_url(target_url, namespace=target_ns)
    source.open()
    target.open()
    put = target.seal

    def seal(value: object) -> None:
        trap("target.opening" if value is None else "target.sealing")
        put(value)

    target.seal = seal
    moved = copy.move(source, target, wait=20 * SECOND, on_step=lambda step: trap(step.phase))
    print(f"moved {moved}", flush=True)  # noqa: T201 - the test that started it reads this


if __name__ == "__main__":
    main(*sys.argv[1:])
