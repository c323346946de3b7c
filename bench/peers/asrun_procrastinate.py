"""Procrastinate by its worker command, on PostgreSQL. It keeps jobs, and no results."""

import asyncio

from asrun_work import URL, main, work
from procrastinate import App, PsycopgConnector

BATCH = 1_000
app = App(connector=PsycopgConnector(conninfo=URL))


@app.task(name="work")
async def task(number: int, word: str) -> str:
    return work(number, word)


async def enqueue_many(count: int) -> None:
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        await task.batch_defer_async(*({"number": number, "word": "word"} for number in numbers))


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.open_async())
    if not loop.run_until_complete(app.check_connection_async()):
        loop.run_until_complete(app.schema_manager.apply_schema_async())
    main(
        lambda number, word: loop.run_until_complete(task.defer_async(number=number, word=word)),
        lambda count: loop.run_until_complete(enqueue_many(count)),
    )
