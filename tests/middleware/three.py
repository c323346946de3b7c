"""An app with middleware that a worker's processes can load, and the same task three ways."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

from rota import App, Middleware, Secret, current_job

app = App("memory://", name="three-middleware")
say = print
seen: list[str] = []


class Doubles(Middleware):
    """Wraps what happens in the meta's `mode`; every attempt leaves its number in the result."""

    def run(self, job: Any, call_next: Any) -> Any:
        mode = job.meta.get("mode")
        if mode == "raise" and job.attempt == 1:
            raise RuntimeError("the middleware broke")
        if mode == "hang":
            time.sleep(60)
            return None  # its output would go to the test that runs then
        if mode == "forget":
            return None
        value = call_next(_changed(job, mode))
        return None if mode == "drop" else _result(job, value)

    async def arun(self, job: Any, call_next: Any) -> Any:
        import asyncio  # noqa: PLC0415

        mode = job.meta.get("mode")
        if mode == "raise" and job.attempt == 1:
            raise RuntimeError("the middleware broke")
        if mode == "hang":
            await asyncio.sleep(60)
        if mode == "forget":
            return None
        value = await call_next(_changed(job, mode))
        return None if mode == "drop" else _result(job, value)


def _changed(job: Any, mode: str) -> Any:
    if mode == "decrypt":
        return job.replace(args=["open sesame"])
    if mode == "unfit":
        return job.replace(args=[1, 2, 3])
    return job.replace(meta={**job.meta, "added": True})


def _result(job: Any, value: Any) -> Any:
    return [value, job.attempt, job.task]


def _work(word: str) -> list[Any]:
    say("the word is", word)
    return [word, bool(current_job.meta.get("added")), os.getpid()]


app.use(Doubles())
options: Any = {"retries": 1, "backoff": "1ms"}


@app.task(**options)
def in_a_thread(word: Annotated[str, Secret]) -> Any:
    return _work(word)


@app.task(**options)
async def on_the_loop(word: Annotated[str, Secret]) -> Any:
    return _work(word)


@app.task(executor="process", **options)
def apart(word: Annotated[str, Secret]) -> Any:
    return _work(word)


WAYS = {"thread": in_a_thread, "loop": on_the_loop, "process": apart}
