"""Celery on Redis or MongoDB: a worker with a thread pool in this process, acknowledged late, results ignored."""

import threading

from celery import Celery
from celery.worker import WorkController
from trial import Contender, Ran, main


class CeleryQueue(Contender):
    """Its fastest for jobs that do nothing: the solo pool and a wide prefetch."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.app = Celery("bench", broker=url)
        self.app.set_default()  # for the worker's thread
        self.app.conf.update(
            task_ignore_result=True,
            task_acks_late=True,
            worker_prefetch_multiplier=1_000,
            broker_connection_retry_on_startup=True,
            worker_hijack_root_logger=False,
            broker_transport_options={"polling_interval": 0.01},
        )

        @self.app.task(name="noop", shared=False)
        def noop() -> None:
            ran()

        self.job = noop
        with self.app.connection_for_write() as connection:
            connection.default_channel  # noqa: B018 - makes its collections, before two processes try to at once

    def enqueue(self) -> None:
        self.job.apply_async()

    def enqueue_many(self, count: int) -> None:
        with self.app.producer_pool.acquire(block=True) as producer:
            for _ in range(count):  # it has no other way
                self.job.apply_async(producer=producer)

    def work(self) -> None:
        worker = WorkController(
            app=self.app, pool_cls="solo", without_gossip=True, without_mingle=True, without_heartbeat=True
        )
        threading.Thread(target=worker.start, daemon=True).start()

    def settle(self) -> None:
        """The acknowledgement follows the job at once."""

    def left(self) -> int:
        with self.app.connection_for_read() as connection:
            try:
                return int(connection.default_channel.queue_declare("celery", passive=True).message_count)
            except connection.channel_errors:  # an empty queue is none
                return 0

    def close(self) -> None:
        """The process ends soon."""


if __name__ == "__main__":
    main(CeleryQueue)
