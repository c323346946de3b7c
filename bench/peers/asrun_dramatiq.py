"""Dramatiq by its command, on Redis, with its own middleware and its results."""

import dramatiq
from asrun_work import URL, main, work
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

broker = RedisBroker(url=URL)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)
task = dramatiq.actor(work, actor_name="work", store_results=True)

if __name__ == "__main__":
    main(task.send)
