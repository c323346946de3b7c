"""Dramatiq on Redis: 8 threads, acknowledged when done: at least once. It keeps no record of what is done."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from trial import AT_ONCE, Contender, Ran, main

THREADS = AT_ONCE or 8


class Dramatiq(Contender):
    """Without the middleware that a no-op needs none of."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.broker = RedisBroker(url=url, middleware=[])

        @dramatiq.actor(broker=self.broker, actor_name="noop")
        def noop() -> None:  # what returns a value would cost it a warning each time
            ran()

        self.job = noop
        self.worker = None

    def enqueue(self) -> None:
        self.job.send()

    def enqueue_many(self, count: int) -> None:
        for _ in range(count):  # it has no other way
            self.job.send()

    def work(self) -> None:
        self.worker = dramatiq.Worker(self.broker, worker_threads=THREADS)
        self.worker.start()

    def settle(self) -> None:
        self.broker.join("default", interval=1)

    def left(self) -> int:
        return int(self.broker.do_qsize("default"))

    def close(self) -> None:
        """The process ends soon."""


if __name__ == "__main__":
    main(Dramatiq)
