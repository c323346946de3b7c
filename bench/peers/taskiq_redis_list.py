"""Taskiq on Redis, by its list broker: coroutines on uvloop. A job is gone as it is taken: at most once."""

import asyncio

from coroutines import AsyncContender
from taskiq.receiver import Receiver
from taskiq_redis import ListQueueBroker
from trial import AT_ONCE as ASKED
from trial import Ran, main

AT_ONCE = ASKED or 100


class Taskiq(AsyncContender):
    """No result backend, which is its fastest."""

    def __init__(self, ran: Ran, url: str) -> None:
        super().__init__(ran)
        self.url = url
        self.broker, self.job = self.make()
        self.call(self.broker.startup())

    def make(self):
        broker = ListQueueBroker(self.url)

        async def noop() -> None:
            await self.run_job()

        return broker, broker.register_task(noop, "noop")

    def enqueue(self) -> None:
        self.call(self.job.kiq())

    def enqueue_many(self, count: int) -> None:
        async def enqueue() -> None:
            for start in range(0, count, AT_ONCE):
                await asyncio.gather(*(self.job.kiq() for _ in range(min(AT_ONCE, count - start))))

        self.call(enqueue())

    def work(self) -> None:
        async def worker() -> None:
            broker, _ = self.make()
            broker.is_worker_process = True
            receiver = Receiver(broker, max_async_tasks=AT_ONCE, max_prefetch=AT_ONCE, validate_params=False)
            await receiver.listen(asyncio.Event())

        self.in_thread(worker)

    def left(self) -> int:
        async def length() -> int:
            from redis.asyncio import Redis  # noqa: PLC0415

            async with Redis(connection_pool=self.broker.connection_pool) as client:
                return int(await client.llen(self.broker.queue_name))

        return self.call(length())


if __name__ == "__main__":
    main(Taskiq)
