"""Right code, as users write it: no type checker has anything to say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, assert_type

from rota import App, Job, Secret, calendar, cron, every

app = App("memory://", redact=["iban"])


class Money:
    def __init__(self, text: str) -> None:
        self.text = text


app.codec(Money, encode=lambda money: money.text, decode=Money)


@app.task
def greet(name: str, times: int = 1) -> str:
    return name * times


@app.task(
    queue="mail", priority="high", retries=5, backoff="10s", timeout=timedelta(minutes=1), unique="1h", keep=False
)
def send(to: str, *, urgent: bool = False) -> None:
    print(to, urgent)  # noqa: T201


@app.task
def pay(amount: Money, pin: Annotated[str, Secret]) -> Money:
    return amount if pin else Money("0")


@app.task
async def fetch(url: str) -> bytes:
    return url.encode()


@app.task(name="shop.count", give_up_on=(LookupError,))
async def count(numbers: list[int]) -> int:
    return len(numbers)


@app.schedule(cron("0 9 * * mon-fri", tz="America/New_York"), overlap="queue", catchup="all", grace="10m", max_runs=3)
def report(day: str = "today") -> str:
    return day


@app.schedule(every("10s"), id="ticks", enabled=False, run_on_start=True, start=datetime(2026, 1, 1, tzinfo=UTC))
async def tick() -> None: ...


async def from_a_coroutine() -> None:
    job = await greet.aenqueue("world", times=2)
    assert_type(job, Job[str])
    assert_type(await fetch("http://localhost"), bytes)
    await send.using(queue="other").aenqueue("ann", urgent=True)


def from_a_function() -> None:
    assert_type(greet("world"), str)
    assert_type(greet.enqueue("world", 2), Job[str])
    assert_type(greet.enqueue("world").result("5s"), str)
    assert_type(fetch.enqueue("http://localhost").result(), bytes)
    assert_type(count.using(priority=5, delay="5m").enqueue([1, 2]), Job[int])
    assert_type(report.enqueue(), Job[str])
    assert_type(pay.enqueue(Money("3"), "1234").result(), Money)
    assert_type([job.state for job in app.jobs.list(state="failed", task="shop.*").items], list[str])
    app.enqueue_many([greet.job("a"), send.using(key="user-42").job("b", urgent=True)])
    app.schedules.put("monthly", greet.job("world"), calendar(months=1, at="00:05"), description="Greets")
    app.on("job.failed", lambda event: print(event.name, event.at, event.data))  # noqa: T201
    with app.running(worker=True, concurrency=4), app.lock("reindex", ttl="60s") as lock:
        assert_type(lock.fence, int)
        lock.extend()
