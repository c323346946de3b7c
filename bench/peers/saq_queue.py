"""SAQ on Redis or PostgreSQL: coroutines, 100 at a time, at least once by its sweep; finished jobs are kept a while."""

import asyncio

from coroutines import AsyncContender
from saq import Queue, Worker
from trial import AT_ONCE as ASKED
from trial import Ran, main

AT_ONCE = ASKED or 100


class Saq(AsyncContender):
    """One worker on a loop of its own."""

    def __init__(self, ran: Ran, url: str) -> None:
        super().__init__(ran)
        self.url = url
        self.queue = Queue.from_url(url)
        self.call(self.queue.connect())

    def enqueue(self) -> None:
        self.call(self.queue.enqueue("noop"))

    def enqueue_many(self, count: int) -> None:
        async def enqueue() -> None:
            for start in range(0, count, AT_ONCE):
                await asyncio.gather(*(self.queue.enqueue("noop") for _ in range(min(AT_ONCE, count - start))))

        self.call(enqueue())

    def work(self) -> None:
        async def noop(_: object) -> None:
            await self.run_job()

        async def worker() -> None:
            queue = Queue.from_url(self.url)
            await queue.connect()
            Worker.SIGNALS = []
            await Worker(queue, [("noop", noop)], concurrency=AT_ONCE, dequeue_timeout=5).start()

        self.in_thread(worker)

    def left(self) -> int:
        return int(self.call(self.queue.count("incomplete")))


if __name__ == "__main__":
    main(Saq)
