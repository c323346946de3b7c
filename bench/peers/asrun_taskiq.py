"""Taskiq by its worker command: the list broker on Redis, with its results there."""

import asyncio

from asrun_work import URL, main, work
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend

AT_ONCE = 100
broker = ListQueueBroker(URL).with_result_backend(RedisAsyncResultBackend(URL, result_ex_time=3_600))


@broker.task(task_name="work")
async def task(number: int, word: str) -> str:
    return work(number, word)


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(broker.startup())

    async def enqueue_many(count: int) -> None:
        for start in range(0, count, AT_ONCE):
            await asyncio.gather(*(task.kiq(number, "word") for number in range(start, min(start + AT_ONCE, count))))

    main(
        lambda number, word: loop.run_until_complete(task.kiq(number, word)),
        lambda count: loop.run_until_complete(enqueue_many(count)),
    )
