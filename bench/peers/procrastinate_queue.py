"""Procrastinate: psycopg 3, 10 coroutines at a time, LISTEN/NOTIFY, at least once; finished jobs are kept."""

from coroutines import AsyncContender
from procrastinate import App, PsycopgConnector
from trial import AT_ONCE as ASKED
from trial import Ran, main

AT_ONCE = ASKED or 10


class Procrastinate(AsyncContender):
    """One worker on a loop of its own."""

    def __init__(self, ran: Ran, url: str) -> None:
        super().__init__(ran)
        self.url = url
        self.app, self.job = self.make()
        self.call(self.app.open_async())
        if not self.call(self.app.check_connection_async()):
            self.call(self.app.schema_manager.apply_schema_async())

    def make(self):
        app = App(connector=PsycopgConnector(conninfo=self.url))

        @app.task(name="noop")
        async def noop() -> None:
            await self.run_job()

        return app, noop

    def enqueue(self) -> None:
        self.call(self.job.defer_async())

    def enqueue_many(self, count: int) -> None:
        for start in range(0, count, 1_000):
            self.call(self.job.batch_defer_async(*({} for _ in range(min(1_000, count - start)))))

    def work(self) -> None:
        async def worker() -> None:
            app, _ = self.make()
            async with app.open_async():
                await app.run_worker_async(concurrency=AT_ONCE, install_signal_handlers=False)

        self.in_thread(worker)

    def left(self) -> int:
        jobs = self.call(self.app.job_manager.list_jobs_async(status="todo"))
        doing = self.call(self.app.job_manager.list_jobs_async(status="doing"))
        return len(list(jobs)) + len(list(doing))


if __name__ == "__main__":
    main(Procrastinate)
