"""RQ on Redis: its worker without a fork per job, which is its fastest; results kept as it comes."""

import threading

from redis import Redis
from rq import Queue, SimpleWorker
from rq.timeouts import TimerDeathPenalty
from trial import Contender, Ran, main

_ran: list[Ran] = []


def noop() -> None:
    _ran[0]()


class Worker(SimpleWorker):
    """In a thread, so without signals."""

    death_penalty_class = TimerDeathPenalty

    def _install_signal_handlers(self) -> None: ...


class Rq(Contender):
    """One queue, one worker."""

    def __init__(self, ran: Ran, url: str) -> None:
        _ran[:] = [ran]
        self.url = url
        self.redis = Redis.from_url(url)
        self.queue = Queue("bench", connection=self.redis)

    def enqueue(self) -> None:
        self.queue.enqueue("rq_queue.noop", job_timeout=-1)

    def enqueue_many(self, count: int) -> None:
        datas = [Queue.prepare_data("rq_queue.noop", timeout=-1) for _ in range(count)]
        self.queue.enqueue_many(datas)

    def work(self) -> None:
        import rq_queue  # noqa: PLC0415 - as the worker will import it

        rq_queue._ran[:] = _ran  # noqa: SLF001
        worker = Worker(["bench"], connection=Redis.from_url(self.url))
        threading.Thread(target=lambda: worker.work(logging_level="ERROR"), daemon=True).start()

    def settle(self) -> None:
        while self.left():
            pass

    def left(self) -> int:
        return len(self.queue) + len(self.queue.started_job_registry)

    def close(self) -> None:
        """The process ends soon."""


if __name__ == "__main__":
    main(Rq)
