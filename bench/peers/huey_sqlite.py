"""Huey on SQLite, by a consumer with threads. It deletes a job as it takes it: at most once, and nothing is kept."""

from huey import SqliteHuey
from huey.api import group
from trial import Contender, Ran, main

THREADS = 2  # more contend for its one connection
POLL = 0.005  # seconds; its default of 100 ms, growing to 10 s, would only tell how it polls


class Huey(Contender):
    """As durable as it gets ("fsync": synchronous=FULL), or "nosync"."""

    def __init__(self, ran: Ran, sync: str) -> None:
        self.huey = SqliteHuey("bench", filename="huey.db", journal_mode="wal", cache_mb=16, fsync=sync == "fsync")

        @self.huey.task(name="noop")
        def noop() -> None:
            ran()

        self.job = noop
        self.consumer = None

    def enqueue(self) -> None:
        self.job()

    def enqueue_many(self, count: int) -> None:
        self.huey.enqueue(group([self.job.s() for _ in range(count)]))  # one commit each; it has no other way

    def fill(self, count: int) -> None:
        connection = self.huey.storage.conn
        connection.execute("PRAGMA synchronous = OFF")
        self.enqueue_many(count)

    def work(self) -> None:
        self.consumer = self.huey.create_consumer(
            workers=THREADS, periodic=False, initial_delay=POLL, max_delay=POLL, backoff=1
        )
        self.consumer.start()

    def settle(self) -> None:
        """Nothing is written after a job has run."""

    def left(self) -> int:
        return self.huey.storage.queue_size()

    def close(self) -> None:
        if self.consumer is not None:
            self.consumer.stop(graceful=True)
        self.huey.storage.close()


if __name__ == "__main__":
    main(Huey)
