"""Rota on any store as it comes: at least once, fenced, with its history and counters; no scheduler beside it."""

from trial import Contender, Ran, main

from rota import App


class Rota(Contender):
    """An app on a store, with its default worker."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.app = App(url)
        self.node = None

        @self.app.task(name="noop")
        def noop() -> None:
            ran()

        self.noop = noop
        self.app.open()

    def enqueue(self) -> None:
        self.noop.enqueue()

    def enqueue_many(self, count: int) -> None:
        self.app.enqueue_many([self.noop.job() for _ in range(count)])

    def work(self) -> None:
        self.node = self.app.start(scheduler=False)

    def settle(self) -> None:
        self.node.worker.is_idle.wait()

    def left(self) -> int:
        counts = self.app.open().list_queues()[0].counts
        return sum(counts.values()) - counts["succeeded"]

    def close(self) -> None:
        self.app.close()


if __name__ == "__main__":
    main(Rota)
