"""An idle document queue in a process of its own: `python -m bench.documents_idle URL SECONDS` prints its queries and
its CPU seconds, each per second.
"""

import subprocess
import sys
import time

import pymongo
from pymongo.monitoring import CommandListener, CommandStartedEvent

from rota.documents import DocumentQueue, MongoSource

REST = 3.0  # seconds after which it is idle


class Counter(CommandListener):
    """Counts the commands that the queue sends."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, event: CommandStartedEvent) -> None:  # noqa: ARG002 - all count
        self.count += 1

    def succeeded(self, event: object) -> None: ...

    def failed(self, event: object) -> None: ...


def main(url: str, seconds: float) -> None:
    counter = Counter()
    orders = pymongo.MongoClient(url, event_listeners=[counter])["bench"]["idle"]
    source = MongoSource(orders)
    source.prepare()
    with DocumentQueue(source, print):
        time.sleep(REST)
        before, queries, begun = time.process_time(), counter.count, time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - begun
        print((counter.count - queries) / passed, (time.process_time() - before) / passed)


def watched(url: str, seconds: float) -> tuple[float, float]:
    """Queries and CPU seconds, each per second."""
    words = [sys.executable, "-m", "bench.documents_idle", url, str(seconds)]
    queries, cpu = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return float(queries), float(cpu)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
