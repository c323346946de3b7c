"""Huey on Redis: a blocking pop, threads. It deletes a job as it takes it: at most once, and nothing is kept."""

from huey import RedisHuey
from trial import AT_ONCE, Contender, Ran, main

THREADS = AT_ONCE or 2


class Huey(Contender):
    """Results off, which is its fastest."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.huey = RedisHuey("bench", url=url, blocking=True, results=False)

        @self.huey.task(name="noop")
        def noop() -> None:
            ran()

        self.job = noop
        self.consumer = None

    def enqueue(self) -> None:
        self.job()

    def enqueue_many(self, count: int) -> None:
        for _ in range(count):  # it has no other way
            self.job()

    def work(self) -> None:
        self.consumer = self.huey.create_consumer(workers=THREADS, periodic=False, check_worker_health=False)
        self.consumer.start()

    def settle(self) -> None:
        """Nothing is written after a job has run."""

    def left(self) -> int:
        return self.huey.storage.queue_size()

    def close(self) -> None:
        """The process ends soon; a blocking pop would hold up a stop."""


if __name__ == "__main__":
    main(Huey)
