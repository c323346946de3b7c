"""Celery by its worker command, on Redis or MongoDB, with results in the same store; late acknowledgement."""

from asrun_work import URL, main, work
from celery import Celery

app = Celery("bench", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1_000,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"polling_interval": 0.01},
)
task = app.task(name="work", shared=False)(work)


def enqueue_many(count: int) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for number in range(count):
            task.apply_async((number, "word"), producer=producer)


if __name__ == "__main__":
    with app.connection_for_write() as connection:
        connection.default_channel  # noqa: B018 - makes its collections, before two processes try to at once
    main(task.delay, enqueue_many)
