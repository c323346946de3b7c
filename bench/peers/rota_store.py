"""Rota on any store as it comes: at least once, fenced, with its history and counters; no scheduler beside it."""

import asyncio

from trial import AT_ONCE, COROUTINE_PAUSE, Contender, Ran, main

from rota import App


class Rota(Contender):
    """An app on a store, with its default worker."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.app = App(url)
        self.node = None

        def noop() -> None:
            ran()

        async def pause() -> None:
            await asyncio.sleep(COROUTINE_PAUSE)
            ran()

        self.noop = self.app.task(name="noop")(pause if COROUTINE_PAUSE else noop)
        self.app.open()

    def enqueue(self) -> None:
        self.noop.enqueue()

    def enqueue_many(self, count: int) -> None:
        self.app.enqueue_many([self.noop.job() for _ in range(count)])

    def work(self) -> None:
        self.node = self.app.start(scheduler=False, concurrency=AT_ONCE or None)

    def settle(self) -> None:
        self.node.worker.is_idle.wait()

    def left(self) -> int:
        counts = self.app.open().list_queues()[0].counts
        return sum(counts.values()) - counts["succeeded"]

    def close(self) -> None:
        self.app.close()


if __name__ == "__main__":
    main(Rota)
