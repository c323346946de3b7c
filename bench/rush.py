"""A scheduler in a process of its own, which fires all that is due at the benchmark's instant.

`python -m bench.rush URL NAMESPACE CLOCK INDEX OF`: it opens the store, says so with a line, waits for one, and fires.
"""

import sys

from bench.wakeup import Wakeup
from rota.engine.scheduling.partition import Partition


def main(url: str, namespace: str, at: str, index: str, of: str) -> None:
    wakeup = Wakeup(url, namespace, int(at), Partition(int(index), int(of)))
    wakeup.store.list_queues()  # connected, before the clock runs
    print("ready", flush=True)
    sys.stdin.readline()
    wakeup.turn_all()
    wakeup.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
