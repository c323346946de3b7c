"""Dramatiq's worker processes, with 8 threads each, as its own command starts them."""

import dramatiq
from cpu_work import URL, main, work
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=URL, middleware=[]))
task = dramatiq.actor(work, actor_name="work")


def enqueue(count: int) -> None:
    for _ in range(count):
        task.send()


if __name__ == "__main__":
    main(enqueue)
