"""PgQueuer by its command: asyncpg, a payload of JSON. It keeps no results."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from asrun_work import URL, main, work
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

BATCH = 1_000


@asynccontextmanager
async def make() -> AsyncIterator[PgQueuer]:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))

    @queuer.entrypoint("work")
    async def task(job: object) -> None:
        work(*json.loads(job.payload))

    yield queuer


def payload(number: int, word: str) -> bytes:
    return json.dumps([number, word]).encode()


async def enqueue_many(queries: Queries, count: int) -> None:
    for start in range(0, count, BATCH):
        payloads = [payload(number, "word") for number in range(start, min(start + BATCH, count))]
        await queries.enqueue(["work"] * len(payloads), payloads, [0] * len(payloads))


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    queries = Queries(AsyncpgDriver(loop.run_until_complete(asyncpg.connect(URL))))
    if not loop.run_until_complete(queries.has_table("pgqueuer")):
        loop.run_until_complete(queries.install())
    main(
        lambda number, word: loop.run_until_complete(queries.enqueue("work", payload(number, word))),
        lambda count: loop.run_until_complete(enqueue_many(queries, count)),
    )
