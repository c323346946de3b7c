"""PgQueuer: asyncpg, uvloop, batches of 100, at least once; a log line per job in a table."""

from datetime import timedelta

import asyncpg
from coroutines import AsyncContender
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from trial import Ran, main

BATCH = 100


class Pgq(AsyncContender):
    """One worker on a loop of its own."""

    def __init__(self, ran: Ran, url: str) -> None:
        super().__init__(ran)
        self.url = url
        self.queries = Queries(AsyncpgDriver(self.call(asyncpg.connect(url))))
        if not self.call(self.queries.has_table("pgqueuer")):
            self.call(self.queries.install())

    def enqueue(self) -> None:
        self.call(self.queries.enqueue("noop", None))

    def enqueue_many(self, count: int) -> None:
        for start in range(0, count, 1_000):
            number = min(1_000, count - start)
            self.call(self.queries.enqueue(["noop"] * number, [None] * number, [0] * number))

    def work(self) -> None:
        async def worker() -> None:
            queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.url)))

            @queuer.entrypoint("noop")
            async def noop(_: object) -> None:
                await self.run_job()

            await queuer.qm.run(dequeue_timeout=timedelta(seconds=5), batch_size=BATCH)

        self.in_thread(worker)

    def left(self) -> int:
        return sum(line.count for line in self.call(self.queries.queue_size()))


if __name__ == "__main__":
    main(Pgq)
