"""Celery's prefork pool, acknowledged late, results ignored, a wide prefetch."""

from celery import Celery
from cpu_work import URL, main, work

app = Celery("bench", broker=URL)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=100,
    broker_connection_retry_on_startup=True,
)
task = app.task(name="work", shared=False)(work)


def enqueue(count: int) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(count):
            task.apply_async(producer=producer)


if __name__ == "__main__":
    main(enqueue)
