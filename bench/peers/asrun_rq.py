"""RQ by its command, on Redis, with the worker class that does not fork per job; it keeps results."""

from asrun_work import URL, main, work
from redis import Redis
from rq import Queue

__all__ = ["work"]
queue = Queue("bench", connection=Redis.from_url(URL))


def enqueue(number: int, word: str) -> None:
    queue.enqueue("asrun_rq.work", number, word)


def enqueue_many(count: int) -> None:
    queue.enqueue_many([Queue.prepare_data("asrun_rq.work", (number, "word")) for number in range(count)])


if __name__ == "__main__":
    main(enqueue, enqueue_many)
